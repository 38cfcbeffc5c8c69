"""State TerminateNodes: asks every machine tagged with the run to terminate, whether a row knows it or not."""

from __future__ import annotations

from typing import Any

from headrace.domain.presence import is_gone
from headrace.handlers._entry import entry
from headrace.handlers._release import note_released, release, terminate
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many machines were asked; those already on their way out are asked again, which is safe.

    Machines that are gone are asked no more: a run whose machines ended by themselves ends even where termination
    is denied. One that no listing shows yet is asked until it is shown.
    """
    run_id = request["run_id"]
    lives = {node.node_id: node.life for node in cloud.fleets.list_nodes(run_id)}
    rows = read_nodes(cloud, run_id)
    now = cloud.clock.now()
    gone = {row.node_id for row in rows if is_gone(row, lives.get(row.node_id), now)}
    standing = [row for row in rows if not row.released_at]
    note_released(cloud, [row for row in standing if row.node_id in gone])
    asked = [row for row in standing if row.node_id not in gone]
    alive = {node_id for node_id, life in lives.items() if life != "terminated"}
    others = sorted(alive - {row.node_id for row in asked})
    try:
        release(cloud, asked)
    finally:
        terminate(cloud, others)
    return {"asked": len(asked) + len(others)}


handler = entry(step)
