"""Node and run rows for tests, with defaults for all that a test does not speak of."""

from __future__ import annotations

from typing import Any

from headrace.domain.run import NodeRow, RunRow

NOON = "2026-01-01T12:00:00.000Z"


def node_row(node_id: str = "i-1", **changes: Any) -> NodeRow:
    """Return a node row launched at noon."""
    fields: dict[str, Any] = {
        "run_id": "small-1",
        "node_id": node_id,
        "role": "compute",
        "attempt": 1,
        "index": 0,
        "instance_type": "c7i.large",
        "zone": "zone-a",
        "address": "10.0.0.1",
        "usd_per_hour": 1.0,
        "launched_at": NOON,
    }
    return NodeRow(**(fields | changes))


def run_row(**changes: Any) -> RunRow:
    """Return the row of a run started at noon."""
    fields: dict[str, Any] = {
        "run_id": "small-1",
        "job_name": "small",
        "execution_arn": "arn:aws:states:local:000000000000:execution:training_run:one",
        "trigger": "console",
        "started_at": NOON,
        "deadline_at": "2026-01-01T15:00:00.000Z",
    }
    return RunRow(**(fields | changes))
