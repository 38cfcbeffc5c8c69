"""What a seed stands for: which jobs are asked for, in which world, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.fault_table import OF_MACHINE_EVENTS, OF_SALVAGE, draw_faults
from tests.simulated_runs import JOB

MEAN_FAULTS = 3.0
MEAN_MACHINE_EVENT_FAULTS = 0.3
MEAN_SALVAGE_FAULTS = 1.0
LOSES_COMPUTE_SHARE = 0.1
LOST_S = (250.0, 290.0, 330.0)
"""After its launch: from when the first commands have written until the last ones end."""
_ABSORBED = frozenset(
    {
        *("sent_twice", "twin", "doubled", "forged", "twice", "slow", "duplicate_trigger", "skew"),
        *("paused", "overlapped", "dies", "stale", "untagged", "slow_to_go", "echoed"),
    }
)
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
    if fault.where.startswith("machine."):
        return True  # The cloud's own events only tell sooner what polling finds.
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
    starts_s: Sequence[float] = (0.0, 1.0)
    """When each of the jobs is asked for."""


HOURS = {"duration_hours": 0.1, "max_hours": 0.3}
"""Short, so that a job that hangs is soon over."""
ON_BUDGET_SHARE = 0.08
BUDGET_HOURS = 0.4
"""For how long a budget pays for the fleet; plans of the shapes expect up to 0.393 hours of it."""
BUDGET_MAX_HOURS = 1.5
"""More hours than the budget pays for, so that the money ends first."""
STARTS_S = (0.0, 45.0, 90.0, 130.0, 130.0)
"""When the first job is asked for: at different times between two passes of the sweep."""
LATER_S = (1.0, 120.0, 250.0)
"""How much later the second one is."""
INFEASIBLE: Sequence[dict[str, Any]] = (
    {"environment": {"image": "example/image:1"}},
    {"compute": {"instance_type": "c7i.larg"}},
    {"data": {"source": "s3://data/nothing/"}},
    {"budget_usd": 0.0001},
    {"results": "s3://closed/here/"},
)
SHAPES: Sequence[tuple[dict[str, Any], dict[str, int], float]] = (
    ({"storage_nodes": 1}, {"storage": 1, "compute": 1}, 0.261),
    ({}, {"storage": 2, "compute": 1}, 0.433),
    ({"compute": {"instance_type": "c7i.large", "count": 2}}, {"storage": 2, "compute": 2}, 0.522),
    (
        {"storage": "local", "storage_nodes": None, "compute": {"instance_type": "i4i.large", "count": 2}},
        {"storage": 0, "compute": 2},
        0.344,
    ),
    (
        {"storage": "direct", "storage_nodes": None, "demand": {"read_bytes_per_s": 100_000}},
        {"storage": 0, "compute": 1},
        0.089,
    ),
)

"""Changes of the job, the machines they lead to, and what those cost in USD per hour."""


def good_scenario() -> Scenario:
    """Return a run of one job in which nothing goes wrong."""
    given = {"job": {**JOB, **HOURS, "name": "job-1"}, "client_token": "token"}
    return Scenario(0, [given], {"storage": 2, "compute": 1}, ())


def scenario_of(seed: int, mean_faults: float = MEAN_FAULTS) -> Scenario:
    """Return what the seed stands for."""
    source = Random(f"scenario {seed}")  # noqa: S311 - a seed is the point
    changes, planned, usd_per_hour = source.choices(SHAPES, (5, 3, 2, 1, 1))[0]
    is_feasible = source.random() > 0.04
    if not is_feasible:
        changes = {**changes, **source.choice(INFEASIBLE)}
    if is_feasible and source.random() < ON_BUDGET_SHARE:
        changes = {**changes, "budget_usd": round(usd_per_hour * BUDGET_HOURS, 4), "max_hours": BUDGET_MAX_HOURS}
    names = ["job-1", "job-10"] if is_feasible and source.random() < 0.1 else ["job-1"]
    jobs = [{"job": {**JOB, **HOURS, **changes, "name": name}, "client_token": f"token of {name}"} for name in names]
    first = source.choice(STARTS_S)
    starts_s = (first, first + source.choice(LATER_S))
    faults = draw_faults(source, mean_faults)
    more = Random(f"machine events {seed}")  # noqa: S311 - the same
    faults += draw_faults(more, MEAN_MACHINE_EVENT_FAULTS, OF_MACHINE_EVENTS)
    faults += _losses(seed, planned)
    return Scenario(seed, jobs, planned, faults, is_feasible, starts_s)


def _losses(seed: int, planned: dict[str, int]) -> tuple[Fault, ...]:
    """Return, for some seeds, that a machine is lost after its command wrote a result, and what befalls its salvage."""
    source = Random(f"salvage {seed}")  # noqa: S311 - the same
    if not planned["storage"] or source.random() >= LOSES_COMPUTE_SHARE:
        return ()
    nth = planned["storage"] + source.randint(1, planned["compute"])
    lost = Fault(source.choice(("spot", "crash")), "machine", nth, 0, source.choice(LOST_S))
    return (lost, *draw_faults(source, MEAN_SALVAGE_FAULTS, OF_SALVAGE))
