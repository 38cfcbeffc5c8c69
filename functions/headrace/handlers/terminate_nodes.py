"""State TerminateNodes: asks every machine tagged with the run to terminate, whether a row knows it or not."""

from __future__ import annotations

from typing import Any

from headrace.handlers._release import release, terminate
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many machines were asked; those already on their way out are asked again, which is safe."""
    run_id = request["run_id"]
    listed = [node.node_id for node in cloud.fleets.list_nodes(run_id) if node.life != "terminated"]
    standing = [node for node in read_nodes(cloud, run_id) if not node.released_at]
    known = {node.node_id for node in standing}
    release(cloud, standing)
    terminate(cloud, [node_id for node_id in listed if node_id not in known])
    return {"asked": len(known | set(listed))}
