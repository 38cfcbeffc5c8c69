"""Which nodes of a large fleet have done their work, kept so that no event looks at more than a few small items.

Each part holds a mark for each of up to 50 nodes, and one item a mark for each part. To set a mark twice changes
nothing, so an event that is applied again counts once. The marks only tell when it is time to look at all nodes: a
mark that was lost is made up for by the look that comes with heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain.lifecycle import Activity
from headrace.domain.run import NodeRow
from headrace.ports import Cloud

KIND = "mark"
PART_NODES = 50
"""About 2 KiB an item, of which a partition of the table takes hundreds of writes a second."""


def begin_marks(cloud: Cloud, run_id: str, activity: Activity, nodes: Sequence[NodeRow]) -> None:
    """Write the items for the nodes that are about to work; those that are there already stay as they are."""
    parts: dict[str, dict[str, bool]] = {}
    for node in nodes:
        parts.setdefault(_part(node), {})[node.node_id] = False
    for part, marks in parts.items():
        cloud.runs.insert(run_id, KIND, f"{activity}-{part}", marks)
    cloud.runs.insert(run_id, KIND, activity, dict.fromkeys(parts, False))


def is_last_to_finish(cloud: Cloud, node: NodeRow, activity: Activity) -> bool:
    """Mark the node; tell whether all have finished by the marks, or that it cannot be told from them."""
    part = _part(node)
    if not cloud.runs.update(node.run_id, KIND, f"{activity}-{part}", {node.node_id: True}, {}):
        return True
    if not _are_all_marked(cloud, node.run_id, f"{activity}-{part}"):
        return False
    cloud.runs.update(node.run_id, KIND, activity, {part: True}, {})
    return _are_all_marked(cloud, node.run_id, activity)


def _part(node: NodeRow) -> str:
    return str(node.index // PART_NODES)


def _are_all_marked(cloud: Cloud, run_id: str, name: str) -> bool:
    return all((cloud.runs.read(run_id, KIND, name) or {}).values())
