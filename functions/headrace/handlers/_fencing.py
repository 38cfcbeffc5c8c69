"""Makes sure that machines which were replaced cannot act any more before others are wired into their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from headrace.domain.errors import NodeNotReady
from headrace.domain.instants import from_text
from headrace.domain.presence import is_gone
from headrace.domain.run import NodeRow
from headrace.handlers._release import terminate
from headrace.ports import Cloud, Node


def are_fenced(cloud: Cloud, replaced: Sequence[NodeRow], listed: Mapping[str, Node]) -> bool:
    """Tell whether every replaced machine is on its way out, asking those that are not to terminate once more.

    One that is not listed may only be hidden, and counts as gone when it has had time to show itself. Raises
    NodeNotReady when one goes on running for as long as a boot may take.
    """
    running = [node for node in replaced if _may_act(cloud, node, listed.get(node.node_id))]
    if not running:
        return True
    if stubborn := [node.node_id for node in running if _is_over(cloud, str(node.released_at))]:
        raise NodeNotReady(f"replaced machines go on running though they were told to terminate: {', '.join(stubborn)}")
    terminate(cloud, [node.node_id for node in running])
    return False


def _may_act(cloud: Cloud, row: NodeRow, node: Node | None) -> bool:
    if node is None:
        return not is_gone(row, None, cloud.clock.now())
    return node.life in ("pending", "running")


def _is_over(cloud: Cloud, since: str) -> bool:
    limit = timedelta(seconds=cloud.settings.node_boot_timeout_seconds)
    return cloud.clock.now() - from_text(since) > limit
