"""State ReleaseCompute: terminates the compute nodes as soon as the job is done."""

from __future__ import annotations

from typing import Any

from headrace.domain.lifecycle import standing
from headrace.handlers._entry import entry
from headrace.handlers._release import release
from headrace.handlers._rows import read_nodes
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return how many compute nodes were asked to terminate."""
    nodes = standing(read_nodes(cloud, request["run_id"]), "compute")
    release(cloud, nodes)
    return {"asked": len(nodes)}


handler = entry(step)
