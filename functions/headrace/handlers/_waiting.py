"""Completing, failing or keeping alive the task that waits for the nodes of a run."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain.instants import to_text
from headrace.domain.lifecycle import Activity, Outcome, lost_nodes, outcome, standing
from headrace.domain.mirroring import can_do_without
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._files import read_plan
from headrace.handlers._limits import hold_to_limits
from headrace.handlers._rows import change_run, read_nodes
from headrace.ports import Cloud


def answer_waiting_task(cloud: Cloud, run: RunRow) -> None:
    """Tell the task that waits in the run's present phase, if one does, what its nodes have come to."""
    if run.phases and run.phases[-1].name == "staging" and run.staging_token:
        _answer(cloud, run, "staging", run.staging_token)
    if run.phases and run.phases[-1].name == "training" and run.training_token:
        _answer(cloud, run, "training", run.training_token)


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
    workers = standing(nodes, run.staging_role if activity == "staging" else "compute")
    supporters: tuple[NodeRow, ...] = standing(nodes, "storage") if activity == "training" else ()
    window = cloud.settings.heartbeat_timeout_seconds
    lost = lost_nodes(supporters, cloud.clock.now(), window)
    if lost and can_do_without(read_plan(cloud, run).chosen.volumes, {one.index for one in lost}):
        supporters = tuple(one for one in supporters if one not in lost)
    return outcome(workers, supporters, activity, run.phases[-1].at, cloud.clock.now(), window)
