"""State ConfirmTerminated: lists the run's machines; only the listing says that they are gone."""

from __future__ import annotations

from typing import Any

from headrace.domain.presence import is_gone
from headrace.handlers._entry import entry
from headrace.handlers._launches import are_launches_settled
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many machines of the run are not terminated yet.

    One too young to be listed counts, and so does a launch that was cut short, whose machines may be hidden.
    """
    lives = {node.node_id: node.life for node in cloud.fleets.list_nodes(request["run_id"])}
    now = cloud.clock.now()
    unseen = [row for row in read_nodes(cloud, request["run_id"]) if row.node_id not in lives]
    remaining = sum(life != "terminated" for life in lives.values())
    remaining += sum(not is_gone(row, None, now) for row in unseen)
    return {"remaining": remaining or int(not are_launches_settled(cloud, request["run_id"]))}


handler = entry(step)
