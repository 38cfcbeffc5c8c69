"""Called when CloudFormation deletes the stack: refuses while a run lives or a machine stands."""

from __future__ import annotations

from typing import Any

from headrace.domain.errors import StackInUse
from headrace.domain.run import RunRow
from headrace.handlers._entry import entry
from headrace.ports import Cloud

NAMED_MAX = 10


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return nothing to note, or raise StackInUse, which keeps the whole stack as it is.

    Machines are listed first, so that one whose run ends in between is only counted too often.
    """
    if request.get("RequestType") != "Delete":
        return {}
    machines = [node.node_id for node in cloud.fleets.list_nodes() if node.life in ("pending", "running")]
    runs = [run_id for run_id in cloud.runs.run_ids() if _is_live(cloud, run_id)]
    if machines or runs:
        raise StackInUse(
            f"the stack cannot be deleted: {len(runs)} runs live{_named(runs)} and {len(machines)} machines stand"
            f"{_named(machines)}. End them with `headrace stop RUN`, wait for their receipts, and delete it again"
        )
    return {}


handler = entry(step)


def _is_live(cloud: Cloud, run_id: str) -> bool:
    item = cloud.runs.read(run_id, "run", "run")
    if item is None:
        return False
    row = RunRow.model_validate(item)
    return not row.ended_at and cloud.executions.is_running(row.execution_arn)


def _named(names: list[str]) -> str:
    if not names:
        return ""
    others = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f" ({', '.join(names[:NAMED_MAX])}{others})"
