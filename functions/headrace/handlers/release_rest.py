"""State ReleaseRest: deletes what the run created besides machines: keys and configurations of nodes, half uploads."""

from __future__ import annotations

from typing import Any

from headrace.domain.instants import to_text
from headrace.domain.nodeconfig import NODE_OBJECTS
from headrace.handlers._entry import entry
from headrace.handlers._files import node_file
from headrace.handlers._leftovers import abort_uploads
from headrace.handlers._rows import change_node, read_nodes, read_run
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many keys were deleted by this call."""
    row = read_run(cloud, request["run_id"])
    nodes = [node for node in read_nodes(cloud, row.run_id) if not node.key_deleted_at]
    for node in nodes:
        for name in NODE_OBJECTS:
            cloud.objects.delete(cloud.settings.run_bucket, row.prefix + node_file(cloud, node.node_id, name))
        change_node(cloud, node, {"key_deleted_at": to_text(cloud.clock.now())})
    abort_uploads(cloud, row)
    return {"deleted": len(nodes)}


handler = entry(step)
