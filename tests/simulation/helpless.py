"""For how long faults keep everybody from acting, so that what takes that much longer is nobody's mistake."""

from __future__ import annotations

from headrace.local.simulated.fault_plan import Fault

OUTAGES = frozenset({"outage", "functions_dead"})
HELPLESS = OUTAGES | {"terminate_denied", "hidden", "adrift", "slow_to_go"}
"""Faults with which the control plane cannot act for a while, so that a machine's life is bounded by its lease."""


def helpless_seconds(fault: Fault) -> float:
    """Return how long nothing could be done from outside because of the fault."""
    if fault.kind not in HELPLESS:
        return 0.0
    if fault.kind in OUTAGES:
        return fault.value * 60.0
    return fault.seconds or 10.0**9
