"""Tasks run within a test, without a daemon around them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace_agent.config import parse_config
from headrace_agent.job_results import JobResults, ResultsPlace
from headrace_agent.node import Node
from headrace_agent.spool import Task
from headrace_agent.work import Work
from tests.agent.surroundings import NODE_ID, RUN_BUCKET, RUN_ID, config


@dataclass
class Said:
    """What a task reported."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, detail_type: str, body: Mapping[str, Any]) -> None:
        self.events.append((detail_type, dict(body)))

    def bodies(self, detail_type: str) -> list[dict[str, Any]]:
        return [body for kind, body in self.events if kind == detail_type]


def process_node(folder: Path, role: str = "compute") -> Node:
    return Node(RUN_ID, NODE_ID, role, 1, RUN_BUCKET, "headrace", True, datetime.now(UTC) + timedelta(hours=1), folder)


def work_for(folder: Path, kind: str, **changes: Any) -> tuple[Work, Said]:
    """Return a task of that kind on a process node, and what will be said."""
    said = Said()
    read = parse_config(json.dumps(config(**changes)))
    return Work(process_node(folder, read.role), Task(f"{kind}-1", kind, read), said), said


def results_of(work: Work, root: Path) -> JobResults:
    """Return what keeps the results below the root safe for a job."""
    task = work.task.config.train
    assert task
    to = (task.results_bucket, task.results_prefix)
    return JobResults(work, ResultsPlace(work.node.node_id, 1, task.node_rank, *to, root, work.node.state))
