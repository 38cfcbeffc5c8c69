"""What changed between two looks at a run: the one source of plain lines and of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from headrace.domain.instants import seconds_between, to_text
from headrace.domain.run import NodeRow, RunRow
from headrace.report.progress import current_nodes, saved_of, staging_of, training_of

ChangeKind = Literal["run", "phase", "node", "staging", "training", "results", "stopping", "failure", "ended"]
QUIET_SHARE = 1 / 30
"""Progress is told again after this share of the phase's age, so a run of days still fits on a few pages."""
QUIET_SECONDS_MIN = 1.0


@dataclass(frozen=True)
class Snapshot:
    """A run as its rows stood at one instant."""

    row: RunRow
    nodes: tuple[NodeRow, ...]
    now: datetime


@dataclass(frozen=True)
class Change:
    """One thing that happened; `facts` is JSON and holds what is needed to say it."""

    kind: ChangeKind
    at: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What was told so far: the last snapshot, and when each kind of progress was told, with what."""

    snapshot: Snapshot | None = None
    told: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)


def changes_since(seen: Seen, snapshot: Snapshot) -> tuple[Seen, tuple[Change, ...]]:
    """Return what is new in the snapshot, in the order it is told, and what has then been told."""
    before = seen.snapshot
    told = dict(seen.told)
    changes = [
        *_run_changes(before, snapshot),
        *_phase_changes(before, snapshot),
        *_node_changes(before, snapshot),
        *_progress_changes(told, snapshot),
        *_end_changes(before, snapshot),
    ]
    return Seen(snapshot, told), tuple(changes)


def _run_changes(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    row = after.row
    if before is None:
        yield Change("run", row.started_at, {"run_id": row.run_id, "job_name": row.job_name, "trigger": row.trigger})
    if row.stop_requested_by and (before is None or not before.row.stop_requested_by):
        yield Change("stopping", to_text(after.now), {"by": row.stop_requested_by})


def _phase_changes(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    marks = after.row.phases
    for place in range(len(before.row.phases) if before else 0, len(marks)):
        mark = marks[place]
        if mark.name == "ended":
            continue
        facts: dict[str, Any] = {"phase": mark.name}
        if place:
            last = marks[place - 1]
            facts |= {"after": last.name, "after_seconds": round(seconds_between(last.at, mark.at), 3)}
        yield Change("phase", mark.at, facts)


def _node_changes(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    states = {node.node_id: node.state for node in before.nodes} if before else {}
    for node in sorted(after.nodes, key=lambda one: (one.launched_at, one.role != "storage", one.index)):
        if states.get(node.node_id) != node.state:
            facts: dict[str, Any] = {"node_id": node.node_id, "role": node.role, "index": node.index}
            facts |= {"attempt": node.attempt, "instance_type": node.instance_type, "state": node.state}
            if node.failure and node.state == "failed":
                facts["failure"] = node.failure
            yield Change("node", to_text(after.now), facts)


def _progress_changes(told: dict[str, tuple[str, dict[str, Any]]], after: Snapshot) -> Iterator[Change]:
    at = to_text(after.now)
    for kind, facts, is_complete in _progress(after):
        last = told.get(kind)
        if last is not None and (last[1] == facts or not (is_complete or _is_due(last[0], at, after.row))):
            continue
        told[kind] = (at, facts)
        yield Change(kind, at, facts)


def _progress(after: Snapshot) -> Iterator[tuple[ChangeKind, dict[str, Any], bool]]:
    staging = staging_of(after.row, after.nodes)
    if staging is not None:
        yield "staging", asdict(staging), staging.files == staging.total_files
    training = training_of(after.nodes)
    if training is not None:
        yield "training", asdict(training), training.step is not None and training.step == training.total_steps
    saved = saved_of(after.nodes)
    if saved is not None:
        yield "results", asdict(saved), _is_all_done(after)


def _is_all_done(after: Snapshot) -> bool:
    nodes = current_nodes(after.nodes, "compute")
    return bool(nodes) and all(node.state in ("done", "failed", "released") for node in nodes)


def _is_due(told_at: str, at: str, row: RunRow) -> bool:
    began = row.phases[-1].at if row.phases else row.started_at
    return seconds_between(told_at, at) >= max(QUIET_SECONDS_MIN, QUIET_SHARE * seconds_between(began, told_at))


def _end_changes(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    row = after.row
    if row.failure and (before is None or before.row.failure != row.failure):
        yield Change("failure", to_text(after.now), {"reason": row.failure})
    if row.status != "RUNNING" and (before is None or before.row.status == "RUNNING"):
        ended_at = row.ended_at or to_text(after.now)
        seconds = round(seconds_between(row.started_at, ended_at), 3)
        yield Change("ended", ended_at, {"status": row.status, "seconds": seconds})
