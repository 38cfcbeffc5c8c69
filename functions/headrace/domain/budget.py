"""Holds a job to its budget, and names the nearest job that would fit when it does not."""

from __future__ import annotations

import math
from typing import Any

from headrace.domain import calibration
from headrace.domain.amounts import usd_text
from headrace.domain.candidates import Candidate
from headrace.domain.errors import InfeasibleJob
from headrace.domain.nearest import largest
from headrace.domain.phases import usd_high, usd_low
from headrace.domain.search import Search


def within_budget(search: Search, ranked: list[Candidate]) -> list[Candidate]:
    """Return the candidates whose dear end the budget covers, in the same order; all of them without a budget.

    Raises InfeasibleJob, with the cheapest plan and what would fit, when there is none.
    """
    budget_usd = search.job.budget_usd
    if budget_usd is None:
        return ranked
    fitting = [one for one in ranked if usd_high(one) <= budget_usd]
    if not fitting:
        raise InfeasibleJob(_over_budget(search, ranked[0], budget_usd))
    return fitting


def _over_budget(search: Search, cheapest: Candidate, budget_usd: float) -> str:
    machine = cheapest.compute.machine.name
    storage = f" and {cheapest.storage_nodes} x {cheapest.storage.machine.name}" if cheapest.storage else ""
    cost = f"{usd_text(usd_low(cheapest))} to {usd_text(usd_high(cheapest))}"
    enough = f"budget_usd: {math.ceil(usd_high(cheapest) * 100) / 100:.2f}"
    ways = [*_shorter(search, cheapest, budget_usd), *_smaller(search), enough]
    return (
        f"budget_usd is {usd_text(budget_usd)}; the cheapest plan, {cheapest.compute.count} x {machine}{storage} for "
        f"{search.job.duration_hours:g} h, costs {cost}. What fits: {' or '.join(ways)}"
    )


def _shorter(search: Search, cheapest: Candidate, budget_usd: float) -> list[str]:
    """Return the longest duration, in tenths of an hour, for which the cheapest plan fits."""
    hourly = calibration.TRAINING_SLOWDOWN * (
        cheapest.storage_usd_per_hour + cheapest.priced_on_demand().compute_usd_per_hour
    )
    fixed = usd_high(cheapest) - hourly * search.job.duration_hours
    hours = math.floor((budget_usd - fixed) / hourly * 10) / 10
    return [f"duration_hours: {hours:g}"] if hours > 0 and _fits(search, duration_hours=hours) else []


def _smaller(search: Search) -> list[str]:
    """Return the largest number of accelerators or machines that fits."""
    compute = search.job.compute
    most = largest(lambda count: _fits(search, compute=compute.model_copy(update={"count": count})), compute.count)
    return [f"compute.count: {most}"] if most else []


def _fits(search: Search, **changes: Any) -> bool:
    return any(usd_high(one) <= (search.job.budget_usd or 0) for one in search.varied(**changes))
