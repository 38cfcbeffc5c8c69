"""State ConfigureNodes: writes every node its configuration and runs the document of the role on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.domain.host_keys import keys_of
from headrace.domain.instants import to_text
from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import Identity, NodeConfig
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.wiring import probed_fabric
from headrace.handlers._configs import read_fleets, send_document, write_configs
from headrace.handlers._entry import entry
from headrace.handlers._files import node_file, read_job, read_model, read_plan, write_model
from headrace.handlers._rows import change_run, read_run, read_standing_run
from headrace.ports import Cloud

DOCUMENTS = {"storage": "configure-storage", "compute": "configure-compute"}


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the id of the command that configures the machines of the role."""
    run_id, role = request["run_id"], request["role"]
    row = read_standing_run(cloud, run_id)
    fleets, plan = read_fleets(cloud, row), read_plan(cloud, row)
    storage, known = standing(fleets.nodes, "storage"), dict[str, str]()
    row = _with_fabric(cloud, row, plan, storage)

    def with_keys(node: NodeRow, config: NodeConfig) -> NodeConfig:
        if config.imports or config.copies:
            keys = keys_of(config, storage, lambda one: _own_key(cloud, row, one, known))
            write_model(cloud, row, node_file(cloud, node.node_id, "fabric.json"), keys)
        return config

    write_configs(cloud, row, plan, fleets, standing(fleets.nodes, role), with_keys)
    command_id = send_document(cloud, row, DOCUMENTS[role], role)
    cloud.runs.insert(run_id, "command", command_id, {"sent_at": to_text(cloud.clock.now())})
    return {"command_id": command_id}


handler = entry(step)


def _with_fabric(cloud: Cloud, row: RunRow, plan: Plan, storage: Sequence[NodeRow]) -> RunRow:
    """Return the run with its fabric, decided once and for all of its machines, before anything is staged."""
    if row.fabric is not None or not any(one.rdma_device for one in storage):
        return row
    fabric = probed_fabric(plan, read_job(cloud, row).fabric, storage)
    if fabric is None:
        return row
    change_run(cloud, row.run_id, {"fabric": fabric}, {"fabric": None})
    return read_run(cloud, row.run_id)


def _own_key(cloud: Cloud, row: RunRow, node: NodeRow, known: dict[str, str]) -> str:
    """Return a storage node's own key, read once."""
    if node.node_id not in known:
        identity = read_model(cloud, row, node_file(cloud, node.node_id, "identity.json"), Identity)
        known[node.node_id] = identity.hmac_key
    return known[node.node_id]
