"""Called when an execution of training_run ends without having reported: starts the decommission it could not."""

from __future__ import annotations

import hashlib
from typing import Any

from headrace.domain.run import RunRow
from headrace.handlers._entry import entry
from headrace.handlers._rows import change_run, read_run
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
    row = read_run(cloud, str(pointer["run_id"]))
    if row.ended_at:
        return {"started": None, "because": "the run has reported"}
    given = {"run_id": row.run_id, "report": True, "failure": _failure(row, detail)}
    arn = cloud.executions.start("decommission", f"{row.run_id}-{detail['status'].lower()}", given)
    change_run(cloud, row.run_id, {"decommission_arn": arn})
    return {"started": arn}


handler = entry(step)


def _failure(row: RunRow, detail: dict[str, Any]) -> dict[str, str]:
    """Return why the run ended: what the sweep noted before it stopped the execution, or what the execution says."""
    if row.failure:
        error, _, cause = row.failure.partition(": ")
        return {"state": "the sweep", "error": error, "cause": cause}
    cause = detail.get("cause") or f"the execution ended as {detail['status']}"
    return {"state": "the execution", "error": detail["status"], "cause": cause}
