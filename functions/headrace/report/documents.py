"""What `ls` and `status` answer to programs; task tokens are secrets of the control plane and are left out."""

from __future__ import annotations

from typing import Any

from headrace.domain.plan import Plan
from headrace.report.progress import usd_so_far
from headrace.report.runs_page import phase_of
from headrace.report.view import Snapshot

SECRET_FIELDS = {"staging_token", "training_token", "salvage_token"}


def run_document(run: Snapshot) -> dict[str, Any]:
    """Return the run's row with its phase and its cost so far."""
    row = run.row.model_dump(mode="json", exclude=SECRET_FIELDS)
    return {**row, "phase": phase_of(run), "usd_so_far": round(usd_so_far(run.nodes, run.now), 6)}


def status_document(run: Snapshot, plan: Plan | None) -> dict[str, Any]:
    """Return the run, its machines and its plan."""
    nodes = [node.model_dump(mode="json") for node in run.nodes]
    return {"run": run_document(run), "nodes": nodes, "plan": plan.model_dump(mode="json") if plan else None}
