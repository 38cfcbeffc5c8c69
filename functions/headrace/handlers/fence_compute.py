"""State FenceCompute: sees to it that no compute node writes any more, where storage nodes are to save what it left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.domain.lifecycle import lost_nodes, standing
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow
from headrace.domain.salvage import holders_of, unsaved
from headrace.handlers._entry import entry
from headrace.handlers._fencing import are_fenced
from headrace.handlers._files import read_plan
from headrace.handlers._release import release
from headrace.handlers._rows import read_nodes, read_standing_run
from headrace.ports import Cloud

UNPAID = frozenset({"BudgetExceeded"})
"""Ends of a run after which it may not spend more."""


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the verdict `fenced`, `waiting` while a machine shuts down, or `needless`.

    It is needless where nothing is left, nobody lives who could save it, or the run has no money left for it. Raises
    NodeNotReady when a machine goes on running for as long as a boot may take.
    """
    run_id = request["run_id"]
    row = read_standing_run(cloud, run_id)
    nodes = read_nodes(cloud, run_id)
    if request["error"] in UNPAID or not _savers(cloud, read_plan(cloud, row), nodes):
        return {"verdict": "needless", "poll_seconds": 0}
    release(cloud, standing(nodes, "compute"))
    listed = {node.node_id: node for node in cloud.fleets.list_nodes(run_id)}
    fenced = are_fenced(cloud, read_nodes(cloud, run_id, "compute"), listed)
    return {"verdict": "fenced" if fenced else "waiting", "poll_seconds": cloud.settings.poll_seconds}


handler = entry(step)


def _savers(cloud: Cloud, plan: Plan, nodes: Sequence[NodeRow]) -> list[NodeRow]:
    """Return the living storage nodes on which something is left that is not saved."""
    storage, window = standing(nodes, "storage"), cloud.settings.heartbeat_timeout_seconds
    lost = lost_nodes(storage, cloud.clock.now(), window)
    holders = holders_of(plan, unsaved(plan, [one for one in nodes if one.role == "compute"]))
    return [one for one in storage if one.index in holders and one not in lost]
