"""The receipt: every resource of a run, when it was released, and the bill against the estimate."""

from __future__ import annotations

from typing import Literal

from headrace.domain.model import Bytes, Contract, Usd

ESTIMATE_NOTE = "Prices are list-price estimates; nothing was bought."


class ReleasedResource(Contract):
    """One thing the run created; times are UTC in ISO 8601, None where it never happened."""

    kind: Literal["node", "key", "object", "process"]
    resource_id: str
    role: str
    instance_type: str
    launched_at: str | None
    released_at: str | None
    seconds_after_job_done: float | None
    usd: Usd


class PhaseSpent(Contract):
    """One phase as it happened."""

    name: str
    started_at: str
    seconds: float
    planned_seconds: float | None


class Receipt(Contract):
    """What a run leaves: written once, at the end, whatever the end was."""

    version: Literal[1] = 1
    run_id: str
    job_name: str
    status: Literal["SUCCEEDED", "FAILED", "STOPPED"]
    reason: str | None
    started_at: str
    ended_at: str
    job_done_at: str | None
    resources: tuple[ReleasedResource, ...]
    phases: tuple[PhaseSpent, ...]
    estimated_usd_low: Usd | None
    estimated_usd_high: Usd | None
    usd: Usd
    results: str | None
    results_files: int
    results_bytes: Bytes
    remarks: tuple[str, ...] = ()
    """What came otherwise than planned and did not end the run."""
    not_executed: tuple[str, ...] = ()
    note: str = ESTIMATE_NOTE
