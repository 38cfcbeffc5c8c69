"""Writing node configurations and starting documents, as three states do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import NodeConfig
from headrace.domain.plan import Plan, Role
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.wiring import configure_node
from headrace.handlers._files import node_file, write_model
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud


class Fleets(NamedTuple):
    """The run's nodes, and the folders of those that share a file system."""

    nodes: tuple[NodeRow, ...]
    shared_folders: dict[str, str]


def read_fleets(cloud: Cloud, row: RunRow) -> Fleets:
    """Return the run's nodes as the table and the cloud know them."""
    listed = cloud.fleets.list_nodes(row.run_id)
    return Fleets(
        nodes=read_nodes(cloud, row.run_id),
        shared_folders={node.node_id: node.shared_folder for node in listed if node.shared_folder},
    )


def _unchanged(_node: NodeRow, config: NodeConfig) -> NodeConfig:
    return config


def write_configs(
    cloud: Cloud,
    row: RunRow,
    plan: Plan,
    fleets: Fleets,
    nodes: Iterable[NodeRow],
    complete: Callable[[NodeRow, NodeConfig], NodeConfig] = _unchanged,
) -> None:
    """Write `config.json` into the folder of each node, completed by what the step adds."""
    storage = standing(fleets.nodes, "storage")
    for node in nodes:
        beat = cloud.settings.heartbeat_seconds
        config = configure_node(plan, node, storage, fleets.shared_folders, beat, row.fabric)
        write_model(cloud, row, node_file(cloud, node.node_id, "config.json"), complete(node, config))


def send_document(cloud: Cloud, row: RunRow, document: str, role: Role) -> str:
    """Start the document on every node of the role; it takes a run id and a config reference, never job text."""
    reference = f"s3://{cloud.settings.run_bucket}/{row.prefix}"
    return cloud.nodes.send(document, row.run_id, role, {"RunId": row.run_id, "ConfigReference": reference})
