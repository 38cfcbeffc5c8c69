"""Completing, failing or keeping alive the task that waits for the nodes of a run.

An event of a small fleet looks at all of its nodes. In a large one, where that would be a thousand rows for each of
dozens of events a second, an event that fails a node speaks for itself, one that finishes a node is marked, and of all
others one in a few seconds looks at all, whose verdict makes up for whatever the rest has missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from headrace.domain.instants import from_text, to_text
from headrace.domain.lifecycle import (
    FINISHING,
    TELEMETRY,
    Activity,
    Outcome,
    lost_nodes,
    outcome,
    salvage_outcome,
    standing,
)
from headrace.domain.mirroring import can_do_without
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._files import read_plan
from headrace.handlers._limits import hold_to_limits
from headrace.handlers._marks import is_last_to_finish
from headrace.handlers._rows import change_run, read_node, read_nodes
from headrace.ports import Cloud

LOOKS_PER_HEARTBEAT = 3
"""How often all nodes of a large fleet are looked at in the time between two heartbeats of one of them."""


def answer_waiting_task(cloud: Cloud, run: RunRow, node_id: str, detail_type: str) -> None:
    """Tell the task that waits in the run's present phase, if one does, what its nodes have come to by this event."""
    for activity, token in _waiting(run):
        if not run.is_large or _must_look(cloud, run, activity, node_id, detail_type):
            _answer(cloud, run, activity, token)


def tell_of_failure(cloud: Cloud, run: RunRow, node: NodeRow) -> None:
    """Fail the task that waits in the run's present phase if it needs this node, which has failed."""
    for activity, token in _waiting(run):
        result = _outcome(cloud, run, (node,), activity)
        if result.verdict == "failed":
            cloud.executions.fail(token, result.error, result.cause)


def _waiting(run: RunRow) -> Iterator[tuple[Activity, str]]:
    phase = run.phases[-1].name if run.phases else ""
    if phase == "staging" and run.staging_token:
        yield "staging", run.staging_token
    if phase == "training" and run.training_token:
        yield "training", run.training_token
    if phase == "salvaging" and run.salvage_token:
        yield "salvaging", run.salvage_token


def _must_look(cloud: Cloud, run: RunRow, activity: Activity, node_id: str, detail_type: str) -> bool:
    """Do what the event needs by itself; tell whether all nodes are to be looked at besides."""
    node = None if detail_type in TELEMETRY else read_node(cloud, run.run_id, node_id)
    if node is not None and node.state == "failed":
        tell_of_failure(cloud, run, node)
    if node is not None and detail_type == FINISHING[activity] and is_last_to_finish(cloud, node, activity):
        return True
    return _is_look_due(cloud, run)


def _is_look_due(cloud: Cloud, run: RunRow) -> bool:
    """Tell whether the last look is long enough ago, and nobody else takes the next."""
    now, period = cloud.clock.now(), timedelta(seconds=cloud.settings.heartbeat_seconds / LOOKS_PER_HEARTBEAT)
    if run.looked_at and now - from_text(run.looked_at) < period:
        return False
    return change_run(cloud, run.run_id, {"looked_at": to_text(now)}, {"looked_at": run.looked_at})


def _answer(cloud: Cloud, run: RunRow, activity: Activity, token: str) -> None:
    nodes = read_nodes(cloud, run.run_id)
    result = _outcome(cloud, run, nodes, activity)
    if result.verdict in ("alive", "silent"):
        result = hold_to_limits(cloud, run, nodes, activity, result)
    if result.verdict == "finished":
        if activity == "training":
            change_run(cloud, run.run_id, {"job_done_at": to_text(cloud.clock.now())}, {"job_done_at": None})
        cloud.executions.succeed(token, {"run_id": run.run_id})
    elif result.verdict == "failed":
        cloud.executions.fail(token, result.error, result.cause)
    elif result.verdict == "alive":
        cloud.executions.heartbeat(token)


def _outcome(cloud: Cloud, run: RunRow, nodes: Sequence[NodeRow], activity: Activity) -> Outcome:
    window = cloud.settings.heartbeat_timeout_seconds
    if activity == "salvaging":
        return salvage_outcome(standing(nodes, "storage"), run.phases[-1].at, cloud.clock.now(), window)
    workers = standing(nodes, run.staging_role if activity == "staging" else "compute")
    supporters: tuple[NodeRow, ...] = standing(nodes, "storage") if activity == "training" else ()
    lost = lost_nodes(supporters, cloud.clock.now(), window)
    if lost and can_do_without(read_plan(cloud, run).chosen.volumes, {one.index for one in lost}):
        supporters = tuple(one for one in supporters if one not in lost)
    return outcome(workers, supporters, activity, run.phases[-1].at, cloud.clock.now(), window)
