"""Every machine of a run for its receipt: the rows, corrected and completed by what the cloud lists."""

from __future__ import annotations

from typing import NamedTuple

from headrace.domain.instants import to_text
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._rows import read_nodes
from headrace.handlers._rules import price_list_of
from headrace.ports import Cloud, Node


class Tally(NamedTuple):
    """The machines that rows know, and those that only the cloud's list does."""

    known: tuple[NodeRow, ...]
    strangers: tuple[NodeRow, ...]


def tally(cloud: Cloud, row: RunRow, region: str | None) -> Tally:
    """Return the run's machines; each was released when the cloud says that it ended, if the cloud tells.

    That may be before it was asked to go, and later too: a request that is taken is not yet carried out. `region` is
    that of the run, whose list has the prices of machines that no row knows.
    """
    listed = {node.node_id: node for node in cloud.fleets.list_nodes(row.run_id)}
    known = tuple(_corrected(node, listed.get(node.node_id)) for node in read_nodes(cloud, row.run_id))
    unknown = [node for node_id, node in listed.items() if node_id not in {one.node_id for one in known}]
    prices = price_list_of(cloud, row, region).on_demand if region and unknown else {}
    return Tally(known, tuple(_stranger(node, prices.get(node.instance_type, 0.0)) for node in unknown))


def _corrected(row: NodeRow, node: Node | None) -> NodeRow:
    if node is None or node.ended_at is None:
        return row
    return row.model_copy(update={"released_at": to_text(node.ended_at)})


def _stranger(node: Node, usd_per_hour: float) -> NodeRow:
    return NodeRow(
        run_id=node.run_id,
        node_id=node.node_id,
        role=node.role,
        attempt=0,
        index=0,
        instance_type=node.instance_type,
        zone=node.zone,
        address=node.address,
        usd_per_hour=usd_per_hour,
        launched_at=to_text(node.launched_at),
        released_at=None if node.ended_at is None else to_text(node.ended_at),
    )
