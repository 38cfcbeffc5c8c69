"""Hands tasks from the commands to the running agent through a folder, so that each task runs once."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace_agent.config import NodeConfig, parse_config
from headrace_agent.fields import ConfigError, Fields
from headrace_agent.files import write_atomically

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One piece of work: `stage`, `train` or `salvage`, with the configuration as it was when it was handed in."""

    task_id: str
    kind: str
    config: NodeConfig


@dataclass(frozen=True)
class Outcome:
    """How a task ended, as the event that says so."""

    detail_type: str
    body: dict[str, Any]


class Spool:
    """Tasks of one node: `<id>.task` until it is done, beside it `<id>.started`, `<id>.outcome` and `<id>.done`.

    A task's id is its kind and a digest of its part of the configuration, so the same task handed in again is known.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hand_in(self, kind: str, config_text: str) -> tuple[str, bool]:
        """Write a task. Return its id and whether it is new; raises ConfigError when the part is absent."""
        fields = Fields.parse(config_text, "config.json")
        part = fields.section(kind)
        if part is None:
            raise ConfigError(f"config.json has no part '{kind}', so there is nothing for this node to {kind}")
        parse_config(config_text)
        text = json.dumps([fields.values.get("run_id"), fields.values.get("attempt"), part.values], sort_keys=True)
        task_id = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if self._path(task_id, "done").exists() or self._path(task_id, "task").exists():
            return task_id, False
        write_atomically(self._path(task_id, "task"), json.dumps({"kind": kind, "config": config_text}))
        return task_id, True

    def next_task(self) -> Task | None:
        """Return the oldest task that is not done."""
        waiting = sorted(self.folder.glob("*.task"), key=lambda path: path.stat().st_mtime_ns)
        for path in waiting:
            if self._path(path.stem, "done").exists():
                path.unlink(missing_ok=True)
                continue
            task = self._read(path)
            if task:
                return task
        return None

    def start(self, task: Task) -> bool:
        """Mark the task as started. Return False when it was already: an earlier agent died over it."""
        mark = self._path(task.task_id, "started")
        if mark.exists():
            return False
        write_atomically(mark, "")
        return True

    def outcome(self, task: Task) -> Outcome | None:
        """Return the outcome that an earlier agent decided on and may not have reported."""
        path = self._path(task.task_id, "outcome")
        if not path.exists():
            return None
        decided = json.loads(path.read_text())
        return Outcome(decided["detail_type"], decided["body"])

    def decide(self, task: Task, outcome: Outcome) -> None:
        """Write the outcome down, before it is reported."""
        text = json.dumps({"detail_type": outcome.detail_type, "body": outcome.body})
        write_atomically(self._path(task.task_id, "outcome"), text)

    def finish(self, task: Task) -> None:
        """Mark the task as done, after its outcome was reported or when there is none to report."""
        write_atomically(self._path(task.task_id, "done"), "")
        self._path(task.task_id, "task").unlink(missing_ok=True)

    def _read(self, path: Path) -> Task | None:
        try:
            fields = Fields.parse(path.read_text(), path.name)
            return Task(path.stem, fields.text("kind"), parse_config(fields.text("config")))
        except (ConfigError, OSError) as error:
            LOG.error("refused task %s: %s", path.name, error)
            path.rename(path.with_suffix(".refused"))
            return None

    def _path(self, task_id: str, state: str) -> Path:
        return self.folder / f"{task_id}.{state}"
