"""State ConfirmTerminated: lists the run's machines; only the listing says that they are gone."""

from __future__ import annotations

from typing import Any

from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many machines of the run are not terminated yet."""
    listed = cloud.fleets.list_nodes(request["run_id"])
    return {"remaining": sum(node.life != "terminated" for node in listed)}
