"""A budget is a bound that a plan keeps, or a refusal that says what would fit."""

from __future__ import annotations

from headrace.domain.planner import plan
from tests.domain.small_world import (
    SMALL,
    dataset,
    job,
    refusal,
)


def test_a_budget_that_is_too_small_is_refused_with_what_fits() -> None:
    spec = job(compute={"instance_type": "cpu.large", "count": 10}, duration_hours=10, budget_usd=50)
    said = refusal(spec)
    assert "budget_usd is 50.00 USD; the cheapest plan, 10 x cpu.large and 1 x disk.cheap for 10 h" in said
    hours = float(said.partition("duration_hours: ")[2].split()[0])
    count = int(said.partition("compute.count: ")[2].split()[0])
    assert plan(spec.model_copy(update={"duration_hours": hours}), dataset(), *SMALL).chosen.usd_high <= 50
    assert plan(
        spec.model_copy(update={"compute": spec.compute.model_copy(update={"count": count})}), dataset(), *SMALL
    )


def test_a_budget_below_any_plan_gets_the_least_that_would_do() -> None:
    assert "What fits: budget_usd: 2.58" in refusal(job(budget_usd=0.001))
