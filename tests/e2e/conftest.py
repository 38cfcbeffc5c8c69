"""Real runs on this machine: the command line, process nodes, the S3 and event endpoints, real training scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.client.opening import open_run_table
from headrace.local.marker import marked_processes

CHECKOUT = Path(__file__).parents[2]
LIMIT_SECONDS = 90
RUN_MARK = "HEADRACE_RUN"


class Headrace:
    """The command line with a home of its own, as a person would use it from another folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.environment = {**os.environ, "HEADRACE_HOME": str(self.home), "NO_COLOR": "1"}
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the argument vector of one command."""
        return [sys.executable, "-m", "headrace", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command and return it running."""
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill every command that a failed test left running, and let the next one clean up after it."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        self("ls")

    def json(self, *arguments: str) -> Any:
        """Run one command with --json and return what it printed."""
        done = self(*arguments, "--json")
        return json.loads(done.stdout)

    def receipt(self) -> dict[str, Any]:
        """Return the receipt of the newest run."""
        return dict(self.json("receipt")["receipt"])

    def runs(self) -> list[dict[str, Any]]:
        """Return the rows of all runs, newest first."""
        return list(self.json("ls")["runs"])

    def phase(self) -> str:
        """Return the phase the newest run is in, or nothing when there is no run yet."""
        if not (self.home / "runs.sqlite3").exists():
            return ""
        with closing(open_run_table(self.home)) as table:
            newest = next(iter(table.rows()), None)
            return newest.phases[-1].name if newest else ""

    def processes(self) -> list[str]:
        """Return the command lines of all processes of runs of this home."""
        node_files = str(self.home)
        return [
            f"{pid} {environment.get('HEADRACE_NODE', '')}"
            for pid, environment in marked_processes({}).items()
            if RUN_MARK in environment and node_files in environment.get("HEADRACE_NODE_FILE", "")
        ]


@pytest.fixture
def headrace(tmp_path: Path) -> Iterator[Headrace]:
    """Yield the command line; whatever a test did, no process of its runs is left."""
    command = Headrace(tmp_path)
    yield command
    command.end()
    await_condition(lambda: command.processes() == [], f"processes are left: {command.processes()}")


def await_condition(holds: Callable[[], bool], otherwise: str, limit_seconds: float = 30) -> None:
    """Wait until the condition holds. Fails with the words when it does not come to hold."""
    deadline = time.monotonic() + limit_seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)  # real processes are awaited here: there is no clock to turn


def write_job(folder: Path, script: str, **changes: Any) -> Path:
    """Write a small job that runs the script on one machine which stages for itself; return the job file."""
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(script)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (data / "one.txt").write_text("1")
    job: Mapping[str, Any] = {
        "name": "small",
        "data": {"source": "data"},
        "results": str(folder / "results"),
        "code": "code",
        "command": ["python", "train.py"],
        "compute": {"instance_type": "c6gd.medium"},
        "demand": {"read_bytes_per_s": 1000},
        "storage": "local",
        "duration_hours": 0.1,
        **changes,
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps({name: value for name, value in job.items() if value is not None}))
    return path
