"""How events move a node, and when the nodes together have finished, failed or gone silent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

from headrace.domain.instants import from_text, to_text
from headrace.domain.plan import Role
from headrace.domain.run import NodeRow, NodeState

TELEMETRY = frozenset({"Telemetry Sampled", "Dataset Progress", "Job Progress", "Results Progress"})
"""Event types of which only the newest counts."""

_ORDER: tuple[NodeState, ...] = get_args(NodeState)
_STATE_AFTER: dict[str, NodeState] = {
    "Node Ready": "ready",
    "Node Configured": "configured",
    "Dataset Staged": "staged",
    "Job Started": "training",
    "Job Done": "done",
    "Results Salvaged": "done",
    "Dataset Failed": "failed",
    "Job Failed": "failed",
    "Node Leaving": "failed",
}
_FIELD: dict[str, str] = {
    "Dataset Progress": "staged",
    "Job Progress": "job",
    "Job Done": "job",
    "Job Failed": "job",
    "Results Progress": "results",
    "Results Salvaged": "salvaged",
}
Activity = Literal["staging", "training", "salvaging"]
_FINISHED: dict[Activity, NodeState] = {"staging": "staged", "training": "done", "salvaging": "done"}
FINISHING: dict[Activity, str] = {
    "staging": "Dataset Staged",
    "training": "Job Done",
    "salvaging": "Results Salvaged",
}
"""The event by which a node has done its part."""


class Outcome(NamedTuple):
    """What a waiting task is told: `finished`, `failed` with an error name and cause, `alive`, or nothing yet."""

    verdict: Literal["finished", "failed", "alive", "silent"]
    error: str = ""
    cause: str = ""


def standing(nodes: Sequence[NodeRow], role: Role) -> tuple[NodeRow, ...]:
    """Return the nodes of the role that have not been released, in order of their place."""
    return tuple(sorted((one for one in nodes if one.role == role and not one.released_at), key=lambda one: one.index))


def has_reached(node: NodeRow, state: NodeState) -> bool:
    """Tell whether the node is in that state or past it, failed and released apart."""
    return node.state not in ("failed", "released") and _ORDER.index(node.state) >= _ORDER.index(state)


def end_in_words(node: NodeRow, life: str, because: str) -> str:
    """Return what became of a machine that ended unasked; `life` and `because` are what the cloud says of it."""
    early = "" if has_reached(node, "configured") else " before it was ready"
    return f"the machine is {life}{early}{f' ({because})' if because else ''}"


def changes_for(node: NodeRow, detail_type: str, sequence: int, body: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the fields of the node row that an event changes; empty when it is telemetry older than what is known.

    What comes after later words is no sign of life: it may have been on its way since before the machine was lost.
    """
    if detail_type in TELEMETRY and sequence <= node.last_sequence:
        return {}
    changes: dict[str, Any] = {"last_sequence": max(sequence, node.last_sequence)}
    if sequence > node.last_sequence:
        changes["last_heard_at"] = to_text(now)
    changes |= _told(node, detail_type, body)
    if field := _FIELD.get(detail_type):
        changes[field] = body
    state = _STATE_AFTER.get(detail_type)
    if state and _may_become(node, state):
        changes["state"] = state
        if state == "failed":
            changes["failure"] = str(body["reason"])
    return changes


def _told(node: NodeRow, detail_type: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return what the node says of itself; what stays as it was is left out where it comes again and again."""
    if detail_type == "Telemetry Sampled":
        troubles = list(body.get("troubles", ()))
        return {"activity": body["activity"]} | ({} if troubles == list(node.troubles) else {"troubles": troubles})
    if detail_type == "Node Ready":
        return {"rdma_device": body["rdma_device"]} if body.get("rdma_device") else {}
    if detail_type == "Node Configured":
        demands = {} if body.get("demands_keys") is None else {"demands_keys": body["demands_keys"]}
        return {"not_executed": list(body.get("not_executed", ()))} | demands
    return {}


def _may_become(node: NodeRow, state: NodeState) -> bool:
    if node.state in ("done", "failed", "released"):
        return False
    return _ORDER.index(state) > _ORDER.index(node.state)


def outcome(
    workers: Sequence[NodeRow],
    supporters: Sequence[NodeRow],
    activity: Activity,
    phase_began_at: str,
    now: datetime,
    window_seconds: int,
) -> Outcome:
    """Tell what the task that waits for the workers should hear.

    A worker is alive when it was heard within the window and is doing the work, has done it, or has had less than one
    window since the phase began to take it up; an agent that only idles on must not keep a task waiting for ever.
    Supporters (storage nodes while others train) need only be there and heard.
    """
    if lost := [one for one in supporters if one.state == "failed"]:
        return Outcome("failed", "NodeLost", _causes(lost))
    if lost := [one for one in workers if one.state == "failed"]:
        return Outcome("failed", "DatasetIncomplete" if activity == "staging" else "JobFailed", _causes(lost))
    if workers and all(has_reached(one, _FINISHED[activity]) for one in workers):
        return Outcome("finished")
    oldest = now - timedelta(seconds=window_seconds)
    is_young = from_text(phase_began_at) > oldest
    are_heard = all(_was_heard(one, oldest) for one in (*workers, *supporters))
    if are_heard and (is_young or all(_is_at_work(one, activity) for one in workers)):
        return Outcome("alive")
    return Outcome("silent")


def salvage_outcome(storage: Sequence[NodeRow], phase_began_at: str, now: datetime, window_seconds: int) -> Outcome:
    """Tell what the task hears that waits for storage nodes to save what compute nodes left.

    One that is lost holds nobody up, for what others hold is saved all the same.
    """
    lost = lost_nodes(storage, now, window_seconds)
    workers = [one for one in storage if one not in lost]
    return outcome(workers, (), "salvaging", phase_began_at, now, window_seconds) if workers else Outcome("finished")


def lost_nodes(nodes: Sequence[NodeRow], now: datetime, window_seconds: int) -> tuple[NodeRow, ...]:
    """Return the nodes that have failed or were not heard within the window."""
    oldest = now - timedelta(seconds=window_seconds)
    return tuple(one for one in nodes if one.state == "failed" or not _was_heard(one, oldest))


def _was_heard(node: NodeRow, oldest: datetime) -> bool:
    return node.last_heard_at is not None and from_text(node.last_heard_at) >= oldest


def _is_at_work(node: NodeRow, activity: Activity) -> bool:
    return node.activity == activity or has_reached(node, _FINISHED[activity])


def _causes(lost: Sequence[NodeRow]) -> str:
    return "; ".join(f"node {one.node_id}: {one.failure or 'left without a reason'}" for one in lost)[:8000]
