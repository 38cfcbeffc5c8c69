"""State MarkTombstone: from here on nothing may be launched for the run."""

from __future__ import annotations

from typing import Any

from headrace.domain.instants import to_text
from headrace.handlers._entry import entry
from headrace.handlers._rows import change_run, enter_phase
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Set the tombstone once; a second decommission finds it set."""
    run_id = request["run_id"]
    change_run(cloud, run_id, {"tombstone_at": to_text(cloud.clock.now())}, {"tombstone_at": None})
    enter_phase(cloud, run_id, "ending")
    return {"poll_seconds": cloud.settings.poll_seconds}


handler = entry(step)
