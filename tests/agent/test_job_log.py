"""The job's log is bounded, whatever is written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_agent.job_log import BYTES_MIN, JobLog

SIZES = st.lists(st.integers(0, 3000), max_size=12)


def output(first: int, size: int) -> bytes:
    """Return bytes of an output whose every place looks different."""
    text = b"".join(b"%07d\n" % number for number in range(first // 8, (first + size) // 8 + 1))
    return text[first % 8 :][:size]


@settings(max_examples=100, deadline=None, print_blob=True)
@given(SIZES)
def test_what_is_kept_is_a_head_and_a_tail_within_the_bound(sizes: list[int]) -> None:
    pieces = [output(sum(sizes[:number]), size) for number, size in enumerate(sizes)]
    written = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        log = JobLog(Path(folder) / "train.log", BYTES_MIN)
        for piece in pieces:
            log.write(piece)
        log.close()
        kept = log.path.read_bytes()
        assert len(kept) <= BYTES_MIN
        assert [one.name for one in Path(folder).iterdir()] == ["train.log"]
    if len(written) <= (BYTES_MIN - 128) // 2:
        assert kept == written
    elif kept != written:
        head, _, rest = kept.partition(b"\n[headrace] ")
        count, _, tail = rest.partition(b" bytes of output left out here\n")
        assert written.startswith(head)
        assert written.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(written)


def test_a_line_without_an_end_and_any_bytes_are_kept(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "train.log", 10_000)
    log.write(b"\xff\x00" * 100)
    log.note("said by the agent")
    assert log.tail().endswith("[headrace] said by the agent\n")
    log.close()
    assert log.path.read_bytes() == b"\xff\x00" * 100 + b"[headrace] said by the agent\n"


def test_a_log_that_goes_on_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(b"before\n")
    log = JobLog(tmp_path / "train.log", 10_000, goes_on=True)
    log.write(b"after\n")
    log.close()
    assert log.path.read_bytes() == b"before\nafter\n"


def test_a_log_that_starts_anew_forgets_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(b"before\n")
    log = JobLog(tmp_path / "train.log", 10_000)
    log.close()
    assert log.path.read_bytes() == b""


def test_a_snapshot_taken_while_it_grows_is_all_that_was_kept_by_then(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "train.log", 10_000)
    log.write(b"one")
    assert log.compose(tmp_path / "copy") == 3
    log.write(b"two")
    assert (tmp_path / "copy").read_bytes() == b"one"
    log.close()
