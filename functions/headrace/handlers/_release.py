"""Terminating machines in small groups and noting when each was released."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from headrace.domain.instants import to_text
from headrace.domain.run import NodeRow
from headrace.handlers._rows import change_node
from headrace.ports import Cloud

GROUP = 50
"""One bad id makes EC2 refuse a whole call, so calls stay small (aws-facts.md section 2)."""


def terminate(cloud: Cloud, node_ids: Sequence[str]) -> None:
    """Ask for the termination of every machine; asking again is safe."""
    remaining = iter(node_ids)
    while group := list(islice(remaining, GROUP)):
        cloud.fleets.terminate(group)


def release(cloud: Cloud, nodes: Sequence[NodeRow]) -> None:
    """Terminate the nodes and note the instant on each row that has none yet."""
    terminate(cloud, [node.node_id for node in nodes])
    released_at = to_text(cloud.clock.now())
    for node in nodes:
        change_node(cloud, node, {"state": "released", "released_at": released_at}, {"released_at": None})
