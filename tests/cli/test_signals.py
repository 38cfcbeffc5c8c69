"""Real runs and real signals: whatever arrives, and whenever, the run ends and no process of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.local import marker
from headrace.local.owner import owner_of

JOB = """
name: endless
data: {source: data}
results: out
command: [python, -c, "import time; print('working', flush=True); time.sleep(600)"]
compute: {instance_type: c7i.large}
storage: fleet
storage_nodes: 1
duration_hours: 0.1
"""
Start = Callable[..., "Running"]


class Running:
    """A `headrace run` in a process of its own, in a session of its own as under a terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "run", str(folder / "job.yaml"), *arguments],
            env={**os.environ, "HEADRACE_HOME": str(folder / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.owner = owner_of(self.process.pid) or ""
        self.seen = ""

    def await_line(self, words: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen += line
            if words in line:
                return
        raise AssertionError(f"{words!r} never came; the run said: {self.seen}")

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        rest, _ = self.process.communicate(timeout=60)
        self.seen += rest
        return self.process.returncode

    def rows(self) -> list[dict[str, str]]:
        listed = subprocess.run(
            [sys.executable, "-m", "headrace", "ls", "--json"],
            env={**os.environ, "HEADRACE_HOME": str(self.folder / "home")},
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(listed.stdout)["runs"])

    def left(self) -> dict[int, dict[str, str]]:
        """Return the processes that carry a mark of this process or of its runs."""
        runs = [marker.marked_processes({marker.RUN: row["run_id"]}) for row in self.rows()]
        return {
            pid: found
            for group in [marker.marked_processes({marker.OWNER: self.owner}), *runs]
            for pid, found in group.items()
        }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sample").write_text("x")
    (tmp_path / "job.yaml").write_text(JOB)
    started: list[Running] = []

    def begin(*arguments: str) -> Running:
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield begin
    for run in started:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
        if run.process.stdout is not None:
            run.process.stdout.close()
        run.rows()


def test_ctrl_c_while_the_job_trains_stops_the_run_and_leaves_nothing(start: Start) -> None:
    run = start()
    run.await_line("training: the command runs")
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert "training is asked to stop, machines are released" in run.seen
    assert "STOPPED after" in run.seen
    assert [row["status"] for row in run.rows()] == ["STOPPED"]
    assert run.left() == {}


def test_signals_without_end_break_nothing(start: Start) -> None:
    run = start("--json")
    run.await_line('"phase": "storage"')
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 10:
        run.process.send_signal(number)
    assert run.end() == 130
    assert json.loads(run.seen.splitlines()[-1])["receipt"]["status"] == "STOPPED"
    assert run.left() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_run_is_recorded_is_not_lost(start: Start, number: signal.Signals) -> None:
    run = start("--json")
    run.await_line('"kind": "plan"')
    run.process.send_signal(number)
    assert run.end() == 130
    assert all(row["status"] == "STOPPED" for row in run.rows())
    assert run.left() == {}


def test_a_reader_that_goes_away_ends_nothing_and_a_signal_still_does(start: Start) -> None:
    run = start()
    run.await_line("training: the command runs")
    assert run.process.stdout is not None
    run.process.stdout.close()
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(timeout=60) == 130
    assert [row["status"] for row in run.rows()] == ["STOPPED"]
    assert run.left() == {}
