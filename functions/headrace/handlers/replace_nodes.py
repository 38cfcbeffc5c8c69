"""State ReplaceNodes: terminates the machines that failed and opens the next launch attempt."""

from __future__ import annotations

from typing import Any

from headrace.domain.errors import NodeNotReady
from headrace.domain.lifecycle import standing
from headrace.handlers._entry import entry
from headrace.handlers._release import release
from headrace.handlers._rows import read_nodes, read_standing_run
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the number of the next attempt.

    Raises NodeNotReady, with every machine's reason, when the allowed attempts are used up.
    """
    run_id, role, attempt = request["run_id"], request["role"], request["attempt"]
    read_standing_run(cloud, run_id)
    failed = [node for node in standing(read_nodes(cloud, run_id), role) if node.state == "failed"]
    release(cloud, failed)
    if attempt >= cloud.settings.launch_attempts:
        reasons = "; ".join(f"{node.node_id} ({node.instance_type}): {node.failure}" for node in failed)
        raise NodeNotReady(f"{attempt} launches did not give a working {role} fleet. The last failed with: {reasons}")
    return {"attempt": attempt + 1}


handler = entry(step)
