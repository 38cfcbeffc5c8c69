"""The outbox: numbering, bounds and survival."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_agent.outbox import DROPPED_FIRST, Outbox

LIFECYCLE = ("Node Ready", "Dataset Staged", "Job Started", "Job Done", "Node Leaving")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from([*DROPPED_FIRST, *LIFECYCLE]), st.integers(1, 400)),
        st.tuples(st.just("take"), st.just(""), st.integers(1, 5)),
        st.tuples(st.just("reopen"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


def seal(size: int) -> Callable[[int], str]:
    return lambda _: "x" * size


@settings(max_examples=60, deadline=None, print_blob=True)
@given(STEPS)
def test_numbers_have_no_gap_bounds_hold_and_lifecycle_events_are_never_lost(
    steps: list[tuple[str, str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outbox.sqlite3"
        outbox = Outbox(path, count_max=6, bytes_max=1200)
        numbers: list[int] = []
        waiting_lifecycle: set[int] = set()
        for action, kind, amount in steps:
            if action == "append":
                numbers.append(outbox.append(kind, seal(amount)))
                if kind in LIFECYCLE:
                    waiting_lifecycle.add(numbers[-1])
            elif action == "take":
                taken = [event.sequence for event in outbox.oldest(amount)]
                outbox.remove(taken)
                waiting_lifecycle -= set(taken)
            else:
                outbox.close()
                outbox = Outbox(path, count_max=6, bytes_max=1200)
            stored = outbox.oldest(1000)
            assert [event.sequence for event in stored] == sorted(event.sequence for event in stored)
            assert {event.sequence for event in stored if event.detail_type in LIFECYCLE} == waiting_lifecycle
            if any(event.detail_type not in LIFECYCLE for event in stored):
                assert len(stored) <= 6
                assert sum(len(event.detail) for event in stored) <= 1200
        outbox.close()
        assert numbers == list(range(1, len(numbers) + 1))


def test_telemetry_is_given_up_before_progress_and_the_oldest_first(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.sqlite3", count_max=3)
    kept = []
    kinds = ("Job Progress", "Telemetry Sampled", "Telemetry Sampled", "Job Started", "Job Progress", "Job Done")
    for kind in kinds:
        outbox.append(kind, lambda _: "{}")
        kept.append([event.sequence for event in outbox.oldest(9)])
    assert kept == [[1], [1, 2], [1, 2, 3], [1, 3, 4], [1, 4, 5], [4, 5, 6]]
    outbox.close()


def test_an_event_that_cannot_be_sealed_takes_no_number(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.sqlite3")

    def break_down(_: int) -> str:
        raise ValueError("no key")

    with pytest.raises(ValueError, match="no key"):
        outbox.append("Job Done", break_down)
    assert outbox.append("Job Done", lambda _: "{}") == 1
    outbox.close()


def test_what_was_appended_is_on_disk_when_the_process_is_killed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    code = (
        "import os,sys; from pathlib import Path; from headrace_agent.outbox import Outbox;"
        "box = Outbox(Path(sys.argv[1])); [box.append('Job Done', lambda n: f'event {n}') for _ in range(3)];"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    outbox = Outbox(path)
    assert [event.detail for event in outbox.oldest(9)] == ["event 1", "event 2", "event 3"]
    assert outbox.append("Node Leaving", lambda _: "{}") == 4
    outbox.close()


def test_the_file_is_written_with_full_synchrony_and_a_write_ahead_log(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    assert outbox._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert outbox._database.execute("PRAGMA synchronous").fetchone() == (2,)
    outbox.close()
    with pytest.raises(sqlite3.ProgrammingError):
        outbox.depth()
