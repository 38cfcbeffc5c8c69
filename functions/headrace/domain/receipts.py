"""Making a receipt out of what a run's rows say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from headrace.domain.cost import BillLine, NodeUse, bill
from headrace.domain.instants import seconds_between
from headrace.domain.plan import Plan
from headrace.domain.receipt import PhaseSpent, Receipt, ReleasedResource
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.salvage import salvage_remarks, saved_totals


class Ending(NamedTuple):
    """How a run ended; `results` is the address of its folder in the results bucket."""

    status: Literal["SUCCEEDED", "FAILED", "STOPPED"]
    reason: str | None
    ended_at: str
    results: str | None


def write_receipt(
    row: RunRow, nodes: Sequence[NodeRow], plan: Plan | None, ending: Ending, strangers: Sequence[NodeRow] = ()
) -> Receipt:
    """Return the receipt of a run that has ended; its bill is the exact sum of its machines' bills.

    `strangers` are machines of the run that it never adopted: they cost money, and never had a key.
    """
    paid_for = [*nodes, *strangers]
    paid = bill(_use(node, ending.ended_at) for node in paid_for)
    machines = [_machine(row, node, line) for node, line in zip(paid_for, paid.lines, strict=True)]
    keys = [_key(row, node) for node in nodes]
    saved_files, saved_bytes = saved_totals(nodes)
    return Receipt(
        run_id=row.run_id,
        job_name=row.job_name,
        status=ending.status,
        reason=ending.reason,
        started_at=row.started_at,
        ended_at=ending.ended_at,
        job_done_at=row.job_done_at,
        resources=(*machines, *keys),
        phases=_phases(row, plan, ending.ended_at),
        estimated_usd_low=plan.chosen.usd_low if plan else None,
        estimated_usd_high=plan.chosen.usd_high if plan else None,
        usd=paid.usd,
        results=ending.results,
        results_files=row.results_files or saved_files,
        results_bytes=row.results_bytes or saved_bytes,
        remarks=(*row.remarks, *salvage_remarks(nodes)),
        not_executed=tuple(sorted({action for node in nodes for action in node.not_executed})),
    )


def _use(node: NodeRow, ended_at: str) -> NodeUse:
    seconds = max(0.0, seconds_between(node.launched_at, node.released_at or ended_at))
    return NodeUse(node.node_id, seconds, node.usd_per_hour)


def _machine(row: RunRow, node: NodeRow, line: BillLine) -> ReleasedResource:
    return ReleasedResource(
        kind="node",
        resource_id=node.node_id,
        role=node.role,
        instance_type=node.instance_type,
        launched_at=node.launched_at,
        released_at=node.released_at,
        seconds_after_job_done=_after_job_done(row, node.released_at),
        usd=line.usd,
    )


def _key(row: RunRow, node: NodeRow) -> ReleasedResource:
    return ReleasedResource(
        kind="key",
        resource_id=f"key of {node.node_id}",
        role=node.role,
        instance_type="",
        launched_at=node.launched_at,
        released_at=node.key_deleted_at,
        seconds_after_job_done=_after_job_done(row, node.key_deleted_at),
        usd=0.0,
    )


def _after_job_done(row: RunRow, released_at: str | None) -> float | None:
    if row.job_done_at is None or released_at is None:
        return None
    return seconds_between(row.job_done_at, released_at)


def _phases(row: RunRow, plan: Plan | None, ended_at: str) -> tuple[PhaseSpent, ...]:
    planned: dict[str, float] = {phase.name: phase.eta_s for phase in plan.chosen.phases} if plan else {}
    ends = [*(mark.at for mark in row.phases), ended_at][1:]
    return tuple(
        PhaseSpent(
            name=mark.name,
            started_at=mark.at,
            seconds=max(0.0, seconds_between(mark.at, end)),
            planned_seconds=planned.get(mark.name),
        )
        for mark, end in zip(row.phases, ends, strict=True)
        if mark.name != "ended"
    )
