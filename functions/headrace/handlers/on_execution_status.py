"""Called when an execution of training_run ends without having reported: starts the decommission it could not."""

from __future__ import annotations

import hashlib
from typing import Any

from headrace.handlers._rows import read_run
from headrace.ports import Cloud

ENDED_BADLY = frozenset({"FAILED", "TIMED_OUT", "ABORTED"})


def pointer_id(execution_arn: str) -> str:
    """Return the key under which the table keeps which run an execution drives."""
    return "execution-" + hashlib.sha256(execution_arn.encode()).hexdigest()[:32]


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Start `decommission` with a report unless the run has reported; return its ARN or why nothing was started."""
    detail = request["detail"]
    if detail["status"] not in ENDED_BADLY:
        return {"started": None, "because": f"the execution is {detail['status']}"}
    pointer = cloud.runs.read(pointer_id(detail["executionArn"]), "pointer", "run")
    if pointer is None:
        return {"started": None, "because": "the execution admitted no run"}
    run_id = str(pointer["run_id"])
    if read_run(cloud, run_id).ended_at:
        return {"started": None, "because": "the run has reported"}
    failure = {
        "state": "the execution",
        "error": detail["status"],
        "cause": detail.get("cause") or f"the execution ended as {detail['status']}",
    }
    given = {"run_id": run_id, "report": True, "failure": failure}
    return {"started": cloud.executions.start("decommission", f"{run_id}-{detail['status'].lower()}", given)}
