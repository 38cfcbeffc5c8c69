"""What the sweep reads, in the order that keeps it from being fooled: machines first, run records second."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.domain.instants import from_text
from headrace.domain.run import RunRow
from headrace.domain.spending import Limit, tightest
from headrace.domain.sweep import Machine, RunFacts, Suspicion
from headrace.handlers._limits import run_limits
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud

TABLE, KIND = "sweep", "sweep"
"""Where observations are kept: one collection, since the runs of some machines have no row to keep them beside."""


class Sight(NamedTuple):
    """What one pass saw; `unreadable` says why nothing is known of a run, whose machines are then left alone."""

    machines: tuple[Machine, ...]
    runs: dict[str, RunFacts]
    unreadable: dict[str, str]


def look(cloud: Cloud) -> Sight:
    """Return the machines and then the runs, so that every machine seen was launched before its run is looked up."""
    machines = tuple(
        Machine(node.node_id, node.run_id, node.life == "terminated", node.launched_at)
        for node in cloud.fleets.list_nodes()
    )
    standing = {machine.run_id for machine in machines if not machine.is_terminated}
    runs: dict[str, RunFacts] = {}
    unreadable: dict[str, str] = {}
    for run_id in dict.fromkeys([*cloud.runs.run_ids(), *sorted(standing)]):
        try:
            facts = _facts(cloud, run_id, is_empty=run_id not in standing)
        except Exception as error:
            unreadable[run_id] = f"run {run_id} cannot be read: {type(error).__name__}: {error}"
        else:
            if facts is not None:
                runs[run_id] = facts
    return Sight(machines, runs, unreadable)


def _facts(cloud: Cloud, run_id: str, *, is_empty: bool) -> RunFacts | None:
    item = cloud.runs.read(run_id, "run", "run")
    if item is None:
        return None
    row = RunRow.model_validate(item)
    if row.ended_at:
        return RunFacts(row, is_driven=False, is_decommissioning=False, exceeded=None, is_empty=is_empty)
    is_driven = cloud.executions.is_running(row.execution_arn)
    return RunFacts(
        row,
        is_driven=is_driven,
        is_decommissioning=bool(row.decommission_arn) and cloud.executions.is_running(str(row.decommission_arn)),
        exceeded=_exceeded(cloud, row) if is_driven and not row.tombstone_at else None,
        is_empty=is_empty,
    )


def _exceeded(cloud: Cloud, row: RunRow) -> Limit | None:
    nodes = read_nodes(cloud, row.run_id) if row.budget_usd is not None else ()
    worst = tightest(run_limits(cloud, row, nodes))
    return worst if worst.used >= 1 else None


def read_suspicions(cloud: Cloud) -> dict[str, Suspicion]:
    """Return the observations of earlier passes, by subject."""
    return {
        str(item["subject"]): Suspicion(str(item["finding"]), from_text(str(item["first_seen_at"])))
        for item in cloud.runs.items(TABLE, KIND)
    }


def forget(cloud: Cloud, subjects: Iterable[str]) -> None:
    """Remove observations."""
    for subject in subjects:
        cloud.runs.delete(TABLE, KIND, subject)
