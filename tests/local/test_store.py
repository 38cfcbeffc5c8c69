"""The run table keeps its word when several threads and several processes write at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from headrace.local.store import LocalRuns
from tests.waiting import wait_until

COUNTING = """
import sys
from pathlib import Path
from headrace.local.store import LocalRuns
runs = LocalRuns(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    while True:
        seen = runs.read("job-1", "run", "run")["count"]
        if runs.update("job-1", "run", "run", {"count": seen + 1}, {"count": seen}):
            break
runs.close()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite3"


@pytest.fixture
def runs(file: Path) -> Iterator[LocalRuns]:
    with closing(LocalRuns(file)) as table:
        yield table


def count_up(runs: LocalRuns, times: int) -> None:
    for _ in range(times):
        while True:
            seen = (runs.read("job-1", "run", "run") or {})["count"]
            if runs.update("job-1", "run", "run", {"count": seen + 1}, {"count": seen}):
                break


def test_no_increment_is_lost_between_threads(runs: LocalRuns) -> None:
    runs.insert("job-1", "run", "run", {"count": 0})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: count_up(runs, 25), range(8)))
    assert runs.read("job-1", "run", "run") == {"count": 200}


def test_no_increment_is_lost_between_processes(runs: LocalRuns, file: Path) -> None:
    runs.insert("job-1", "run", "run", {"count": 0})
    others = [subprocess.Popen([sys.executable, "-c", COUNTING, str(file), "50"]) for _ in range(2)]
    count_up(runs, 50)
    assert [other.wait(60) for other in others] == [0, 0]
    assert runs.read("job-1", "run", "run") == {"count": 150}


def test_only_one_of_many_inserts_of_a_key_succeeds(runs: LocalRuns) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda number: runs.insert("job-1", "event", "e", {"number": number}), range(32)))
    assert sum(taken) == 1
    assert runs.read("job-1", "event", "e") == {"number": taken.index(True)}


def test_a_writer_killed_at_any_instant_leaves_the_table_whole(runs: LocalRuns, file: Path) -> None:
    runs.insert("job-1", "run", "run", {"count": 0})
    writer = subprocess.Popen([sys.executable, "-c", COUNTING, str(file), "1000000"])
    wait_until(lambda: (runs.read("job-1", "run", "run") or {})["count"] > 20)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    seen = (runs.read("job-1", "run", "run") or {})["count"]
    assert runs.update("job-1", "run", "run", {"count": 0}, {"count": seen})


def test_what_was_written_is_there_when_the_file_is_opened_again(file: Path) -> None:
    with closing(LocalRuns(file)) as first:
        first.insert("job-1", "run", "run", {"name": "é\n\u2028", "n": 2**60})
    with closing(LocalRuns(file)) as second:
        assert second.read("job-1", "run", "run") == {"name": "é\n\u2028", "n": 2**60}


def test_run_ids_are_those_of_runs_and_not_of_what_points_to_them(runs: LocalRuns) -> None:
    runs.insert("execution-abc", "pointer", "run", {"run_id": "job-1"})
    runs.insert("job-1", "run", "run", {})
    assert list(runs.run_ids()) == ["job-1"]


def test_a_failed_change_is_undone(runs: LocalRuns) -> None:
    runs.insert("job-1", "run", "run", {"count": 1})
    with pytest.raises(TypeError):
        runs.update("job-1", "run", "run", {"count": object()}, {})
    assert runs.read("job-1", "run", "run") == {"count": 1}
    assert runs.update("job-1", "run", "run", {"count": 2}, {"count": 1})
