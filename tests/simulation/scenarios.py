"""What a seed stands for: which jobs are asked for, in which world, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.fault_table import draw_faults
from tests.simulated_runs import JOB

MEAN_FAULTS = 3.0
_ABSORBED = frozenset({"sent_twice", "twin", "doubled", "forged", "twice", "slow", "duplicate_trigger", "skew"})
_AWAITED = frozenset({"hidden", "no_address", "empty", "unregistered"})
_INVOKED_AGAIN = frozenset({"not_run", "throttled", "unreachable", "timed_out"})
_SAID_AGAIN = ("Node Ready", "Node Configured", "Node Leaving", "Telemetry Sampled", "Job Started", "Job Progress")
_SDK_RETRIES = 4
_BOOT_SECONDS = 500.0


def is_absorbed(fault: Fault) -> bool:
    """Tell whether the fault costs nothing but time: a run that meets only such faults succeeds."""
    if fault.kind in _ABSORBED:
        return True
    if fault.kind in _AWAITED:
        return fault.seconds < _BOOT_SECONDS
    if fault.where.startswith("invoke."):
        return fault.kind in _INVOKED_AGAIN
    if fault.where.startswith("event."):
        return fault.where.removeprefix("event.") in _SAID_AGAIN
    return fault.kind == "throttled" and fault.value <= _SDK_RETRIES


@dataclass(frozen=True)
class Scenario:
    """One seed. Each of `jobs` is an execution's input; `is_feasible` tells whether any may launch machines."""

    seed: int
    jobs: Sequence[dict[str, Any]]
    planned: dict[str, int]
    faults: Sequence[Fault]
    is_feasible: bool = True


HOURS = {"duration_hours": 0.1, "max_hours": 0.2}
"""Short, so that a job that hangs is soon over."""
INFEASIBLE: Sequence[dict[str, Any]] = (
    {"resilience": "mirror"},
    {"compute": {"instance_type": "c7i.larg"}},
    {"data": {"source": "s3://data/nothing/"}},
    {"budget_usd": 0.0001},
    {"results": "s3://closed/here/"},
)
SHAPES: Sequence[tuple[dict[str, Any], dict[str, int]]] = (
    ({"storage_nodes": 1}, {"storage": 1, "compute": 1}),
    ({}, {"storage": 2, "compute": 1}),
    ({"compute": {"instance_type": "c7i.large", "count": 2}}, {"storage": 2, "compute": 2}),
    (
        {"storage": "local", "storage_nodes": None, "compute": {"instance_type": "i4i.large", "count": 2}},
        {"storage": 0, "compute": 2},
    ),
    (
        {"storage": "direct", "storage_nodes": None, "demand": {"read_bytes_per_s": 100_000}},
        {"storage": 0, "compute": 1},
    ),
)


def good_scenario() -> Scenario:
    """Return a run of one job in which nothing goes wrong."""
    given = {"job": {**JOB, **HOURS, "name": "job-1"}, "client_token": "token"}
    return Scenario(0, [given], {"storage": 2, "compute": 1}, ())


def scenario_of(seed: int, mean_faults: float = MEAN_FAULTS) -> Scenario:
    """Return what the seed stands for."""
    source = Random(f"scenario {seed}")  # noqa: S311 - a seed is the point
    changes, planned = source.choices(SHAPES, (5, 3, 2, 1, 1))[0]
    is_feasible = source.random() > 0.04
    if not is_feasible:
        changes = {**changes, **source.choice(INFEASIBLE)}
    names = ["job-1", "job-10"] if is_feasible and source.random() < 0.1 else ["job-1"]
    jobs = [{"job": {**JOB, **HOURS, **changes, "name": name}, "client_token": f"token of {name}"} for name in names]
    return Scenario(seed, jobs, planned, draw_faults(source, mean_faults), is_feasible)
