"""One real `headrace run` with all that can be seen of it from outside: run table, node folders, processes, results."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.domain.run import RunRow
from headrace.local.marker import marked_processes
from headrace.local.owner import is_alive, owner_of
from headrace.local.store import LocalRuns

RUN_BUCKET = "headrace-runs"
SURROUNDINGS = dict(os.environ)
"""Read once: runs are begun by threads, and pytest adds and removes a variable of its own meanwhile."""

TRAINER = """
import os, pathlib, random, time
results = pathlib.Path(os.environ["HEADRACE_RESULTS"])
for number in range(int(os.environ["FILES"])):
    body = random.Random(f"{os.environ['SEED']}-{number}").randbytes(int(os.environ["BYTES"]))
    (results / f"{number:04d}.part").write_bytes(body)
    os.rename(results / f"{number:04d}.part", results / f"{number:04d}.bin")
    with open(os.environ["HEADRACE_PROGRESS"], "a") as progress:
        progress.write('{"step": %d}\\n' % number)
    if number < 2:
        time.sleep(float(os.environ["PAUSE_SECONDS"]))
"""


class WatchedRun:
    """A run in a home of its own below `folder`; what it trains, and so what it must save, depends on the seed."""

    def __init__(self, folder: Path, seed: int, files: int = 2, file_bytes: int = 50_000, **job: Any) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.file_bytes = file_bytes
        self._variables = {"SEED": str(seed), "FILES": str(files), "BYTES": str(file_bytes), "PAUSE_SECONDS": "0.5"}
        self._environment = {**SURROUNDINGS, "HEADRACE_HOME": str(self.home), "NO_COLOR": "1"}
        self._write_job(data_files=job.pop("data_files", 3), changes=job)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the run, or another command of the same home; what it prints is added to `run.out`."""
        with (self.folder / "run.out").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "headrace", *(arguments or ("run", str(self.folder / "job.yaml")))],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def printed(self) -> str:
        """Return what the run and the commands after it printed."""
        return (self.folder / "run.out").read_text(errors="replace")

    @cached_property
    def expected(self) -> dict[str, bytes]:
        """Every result that the training command writes, by name."""
        seed, files, size_bytes = (self._variables[name] for name in ("SEED", "FILES", "BYTES"))
        return {
            f"{number:04d}.bin": random.Random(f"{seed}-{number}").randbytes(int(size_bytes))  # noqa: S311 - no secret
            for number in range(int(files))
        }

    def rows(self) -> tuple[RunRow, ...]:
        """Return the rows of all runs of this home."""
        with closing(LocalRuns(self._table)) if self._table.exists() else closing(LocalRuns(None)) as runs:
            found = (runs.read(run_id, "run", "run") for run_id in runs.run_ids())
            return tuple(RunRow.model_validate(item) for item in found if item)

    def phase(self) -> str:
        """Return the phase that the run is in, or nothing before there is a run."""
        items = self._items("run")
        phases = items[-1]["phases"] if items else []
        return str(phases[-1]["name"]) if phases else ""

    def node_states(self, role: str) -> set[str]:
        """Return the states of the role's nodes as the run table has them."""
        items = self._items("node")
        return {str(item["state"]) for item in items if item["role"] == role}

    def node_folders(self, role: str) -> list[Path]:
        """Return the folders of the role's nodes."""
        files = self.home.glob("nodes/*/*/node.json")
        return [file.parent for file in files if f'"role": "{role}"' in _text_of(file)]

    def has_task(self, role: str, pattern: str) -> bool:
        """Tell whether a node of the role has a spool file of that name."""
        return any(any(folder.glob(f"spool/{pattern}")) for folder in self.node_folders(role))

    def written(self) -> set[str]:
        """Return names of the results that the training command has finished on its node."""
        own = self.home.glob("nodes/*/*/results/*.bin")
        return {file.name for file in (*own, *self.home.glob("nodes/*/*/volumes/*/results/*.bin"))}

    def arrived(self) -> set[str]:
        """Return names of what is in the results folder, whole or not."""
        try:
            return {file.name for file in self.folder.glob("results/*/*.bin")}
        except FileNotFoundError:
            return set()  # the server removed and made the folder again meanwhile

    def arriving(self) -> list[int]:
        """Return sizes of all that is in the results folder, under whatever name it is written."""
        try:
            found = list(self.folder.glob("results/*/*"))
        except FileNotFoundError:
            return []
        return [size for path in found if (size := _size_of(path)) is not None]

    def intact(self) -> set[str]:
        """Return names of results that are in the results folder byte for byte."""
        found = {file.name: file.read_bytes() for file in self.folder.glob("results/*/*.bin")}
        return {name for name, body in found.items() if self.expected.get(name) == body}

    def journaled(self) -> set[str]:
        """Return names of the results that an agent has written down as saved."""
        own = self.home.glob("nodes/*/*/state/results-*.sqlite3")
        journals = (*own, *self.home.glob("nodes/*/*/volumes/*/state/results-*.sqlite3"))
        return {path for journal in journals for path in _saved_in(journal)}

    def listed_in_manifests(self) -> set[str]:
        """Return names of the results that the manifests in S3 say are saved."""
        if not any(self._bucket.glob("runs/*/results/*/manifest.json")):
            return set()
        parts = self._bucket.glob("runs/*/results/*/part-*.json")
        return {file["path"] for part in parts for file in json.loads(part.read_text())["files"]}

    def receipts(self) -> list[Path]:
        """Return the receipts in the run bucket."""
        return sorted(self._bucket.glob("runs/*/receipt*.json"))

    def agents(self, role: str) -> list[int]:
        """Return pids of the role's living agents."""
        owners = [_text_of(folder / "agent.pid") for folder in self.node_folders(role)]
        return [int(owner.partition(":")[0]) for owner in owners if is_alive(owner)]

    def trainers(self) -> list[int]:
        """Return pids of the training commands."""
        return [pid for pid in self._marked() if b"train.py" in _command_line(pid)]

    def commands(self, word: str) -> list[int]:
        """Return pids of the agent's commands that documents run."""
        return [pid for pid in self._marked() if word.encode() in _command_line(pid).split(b"\0")]

    def servers(self, run_pid: int) -> list[int]:
        """Return pids of the S3 server of the run's process."""
        owner = owner_of(run_pid)
        return list(marked_processes({"HEADRACE_OWNER": owner})) if owner else []

    def processes(self) -> list[str]:
        """Return every process that was started for this home or one of its runs, whoever started it."""
        home, run_ids = str(self.home), {str(item["run_id"]) for item in self._items("run")}
        found = {pid: environment for pid, environment in marked_processes({}).items() if pid != os.getpid()}
        return [
            f"{pid} {_command_line(pid).replace(bytes(1), b' ').decode(errors='replace')[:100]}"
            for pid, environment in found.items()
            if any(home in value or value in run_ids for value in environment.values())
        ]

    @property
    def _table(self) -> Path:
        return self.home / "runs.sqlite3"

    @property
    def _bucket(self) -> Path:
        return self.home / "buckets" / RUN_BUCKET

    def _items(self, kind: str) -> list[dict[str, Any]]:
        """Return items of the run table, read without writing: a look must not disturb what it looks at."""
        query = f"SELECT item FROM items WHERE kind = '{kind}' ORDER BY sequence"  # noqa: S608 - a word of this file
        return [json.loads(text) for (text,) in _rows_of(self._table, query)]

    def _marked(self) -> Iterator[int]:
        home = str(self.home)
        for pid, environment in marked_processes({}).items():
            if home in environment.get("HEADRACE_NODE_FILE", "") or home in environment.get("HEADRACE_RESULTS", ""):
                yield pid

    def _write_job(self, data_files: int, changes: dict[str, Any]) -> None:
        code, data = self.folder / "code", self.folder / "data"
        code.mkdir(parents=True)
        data.mkdir()
        (code / "train.py").write_text(TRAINER)
        for number in range(data_files):
            (data / f"{number:04d}.txt").write_text(f"sample {number}")
        job = {
            "name": "chaos",
            "data": {"source": "data"},
            "results": str(self.folder / "results"),
            "code": "code",
            "command": ["python", "train.py"],
            "compute": {"instance_type": "c6gd.medium"},
            "demand": {"read_bytes_per_s": 1000},
            "storage": "local",
            "duration_hours": 0.1,
            "environment": {"variables": self._variables},
        }
        (self.folder / "job.yaml").write_text(json.dumps({**job, **changes}))


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _saved_in(journal: Path) -> list[str]:
    return [path for (path,) in _rows_of(journal, "SELECT path FROM saved")]


def _rows_of(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what a database of another process holds now; nothing while it is being made, or when it is gone."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as database:
            return database.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
