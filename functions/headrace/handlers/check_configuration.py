"""State CheckConfiguration: tells from true completion counts whether every machine of the role is configured."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.domain.instants import from_text
from headrace.domain.lifecycle import has_reached, standing
from headrace.domain.run import NodeRow
from headrace.handlers._entry import entry
from headrace.handlers._rows import change_node, read_nodes
from headrace.ports import Cloud, CommandStatus


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the verdict `ready`, `waiting` or `replace`; an empty answer of the cloud is not completion."""
    run_id, command_id = request["run_id"], request["command_id"]
    status = cloud.nodes.command_status(command_id)
    is_late = _is_late(cloud, run_id, command_id)
    verdicts = {_check(cloud, node, status, is_late) for node in standing(read_nodes(cloud, run_id), request["role"])}
    if "replace" in verdicts:
        return {"verdict": "replace"}
    return {"verdict": "ready" if verdicts == {"ready"} else "waiting"}


handler = entry(step)


def _is_late(cloud: Cloud, run_id: str, command_id: str) -> bool:
    sent = cloud.runs.read(run_id, "command", command_id)
    limit = timedelta(seconds=cloud.settings.configure_timeout_seconds)
    return sent is not None and cloud.clock.now() - from_text(sent["sent_at"]) > limit


def _check(cloud: Cloud, node: NodeRow, status: CommandStatus, is_late: bool) -> str:
    if node.state == "failed":
        return "replace"
    if node.node_id in status.succeeded:
        if not has_reached(node, "configured"):
            change_node(cloud, node, {"state": "configured"})
        return "ready"
    if node.node_id in status.failed:
        return _give_up(cloud, node, f"its configuration failed: {status.failed[node.node_id]}")
    if is_late:
        return _give_up(cloud, node, f"not configured within {cloud.settings.configure_timeout_seconds} s")
    return "waiting"


def _give_up(cloud: Cloud, node: NodeRow, failure: str) -> str:
    change_node(cloud, node, {"state": "failed", "failure": failure[:2000]})
    return "replace"
