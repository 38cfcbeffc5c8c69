"""Reading and changing the rows of the run table as models."""

from __future__ import annotations

from typing import Any

from headrace.domain.errors import RunTombstoned, UnknownRun
from headrace.domain.instants import to_text
from headrace.domain.plan import Role
from headrace.domain.run import NodeRow, PhaseMark, PhaseName, RunRow
from headrace.ports import Cloud

ATTEMPTS = 10


def read_run(cloud: Cloud, run_id: str) -> RunRow:
    """Return the run's row.

    Raises UnknownRun when there is none.
    """
    return RunRow.model_validate(_read_item(cloud, run_id))


def _read_item(cloud: Cloud, run_id: str) -> dict[str, Any]:
    item = cloud.runs.read(run_id, "run", "run")
    if item is None:
        raise UnknownRun(f"no run is called {run_id!r}")
    return item


def read_standing_run(cloud: Cloud, run_id: str) -> RunRow:
    """Return the run's row.

    Raises RunTombstoned when the run is being decommissioned.
    """
    row = read_run(cloud, run_id)
    if row.tombstone_at:
        raise RunTombstoned(f"run {run_id} is being decommissioned since {row.tombstone_at}; nothing more may start")
    return row


def change_run(cloud: Cloud, run_id: str, changes: dict[str, Any], expecting: dict[str, Any] | None = None) -> bool:
    """Set fields of the run's row if the expected ones hold; return whether they did."""
    return cloud.runs.update(run_id, "run", "run", changes, expecting or {})


def enter_phase(cloud: Cloud, run_id: str, phase: PhaseName) -> RunRow:
    """Note that the run enters the phase now, unless it is in it already; return the row."""
    for _ in range(ATTEMPTS):
        item = _read_item(cloud, run_id)
        old = item["phases"]
        if old and old[-1]["name"] == phase:
            return RunRow.model_validate(item)
        new = [*old, PhaseMark(name=phase, at=to_text(cloud.clock.now())).model_dump()]
        if change_run(cloud, run_id, {"phases": new}, {"phases": old}):
            return read_run(cloud, run_id)
    raise RuntimeError(f"run {run_id}: the phase {phase!r} could not be noted, {ATTEMPTS} writers came between")


def read_nodes(cloud: Cloud, run_id: str, role: Role | None = None) -> tuple[NodeRow, ...]:
    """Return the rows of the run's nodes, of one role when it is given."""
    nodes = (NodeRow.model_validate(item) for item in cloud.runs.items(run_id, "node"))
    return tuple(node for node in nodes if role in (None, node.role))


def read_node(cloud: Cloud, run_id: str, node_id: str) -> NodeRow | None:
    """Return the row of one node, or None."""
    item = cloud.runs.read(run_id, "node", node_id)
    return None if item is None else NodeRow.model_validate(item)


def change_node(cloud: Cloud, node: NodeRow, changes: dict[str, Any], expecting: dict[str, Any] | None = None) -> bool:
    """Set fields of a node's row if the expected ones hold; return whether they did."""
    return cloud.runs.update(node.run_id, "node", node.node_id, changes, expecting or {})
