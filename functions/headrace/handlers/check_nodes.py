"""State CheckNodes: tells which machines can take a document, which still boot, and which never will."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

from headrace.domain.instants import from_text
from headrace.domain.lifecycle import end_in_words, standing
from headrace.domain.run import NodeRow
from headrace.handlers._entry import entry
from headrace.handlers._fencing import are_fenced
from headrace.handlers._rows import change_node, read_nodes
from headrace.ports import Cloud, Node

Verdict = Literal["ready", "waiting", "replace"]


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the verdict `ready`, `waiting` or `replace` over all machines of the role."""
    run_id, role = request["run_id"], request["role"]
    listed = {node.node_id: node for node in cloud.fleets.list_nodes(run_id)}
    online = cloud.nodes.online(run_id, role)
    rows = read_nodes(cloud, run_id, role)
    verdicts = [_check(cloud, node, listed.get(node.node_id), node.node_id in online) for node in standing(rows, role)]
    verdict = _overall(verdicts)
    if verdict == "ready" and not are_fenced(cloud, [node for node in rows if node.released_at], listed):
        verdict = "waiting"
    return {"verdict": verdict}


handler = entry(step)


def _overall(verdicts: list[Verdict]) -> Verdict:
    if "replace" in verdicts:
        return "replace"
    return "ready" if verdicts and set(verdicts) == {"ready"} else "waiting"


def _check(cloud: Cloud, row: NodeRow, node: Node | None, is_online: bool) -> Verdict:
    failure = _failure(row, node, is_online, cloud.clock.now(), cloud.settings.node_boot_timeout_seconds)
    if failure:
        change_node(cloud, row, {"state": "failed", "failure": failure})
        return "replace"
    if node and node.address and node.address != row.address:
        change_node(cloud, row, {"address": node.address})
    return "ready" if is_online and node and node.address else "waiting"


def _failure(row: NodeRow, node: Node | None, is_online: bool, now: datetime, boot_timeout_seconds: int) -> str | None:
    """Return why the machine never will be ready; one not listed yet is only late (aws-facts.md section 2)."""
    if row.state == "failed":
        return row.failure or "failed"
    if node and node.life in ("stopping", "terminated"):
        return end_in_words(row, node.life, node.ended_because)
    age = now - from_text(row.launched_at)
    if not is_online and age > timedelta(seconds=boot_timeout_seconds):
        return f"not ready {age.total_seconds():.0f} s after its launch (allowed: {boot_timeout_seconds} s)"
    return None
