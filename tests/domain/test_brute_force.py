"""On random small worlds the plan costs exactly what an independent brute force finds, and more demand costs more."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headrace.domain.catalog import Catalog, Market, PriceList
from headrace.domain.errors import InfeasibleJob
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from tests.domain.brute_force import cheapest_usd
from tests.domain.random_worlds import World, as_given, random_world, real_world
from tests.domain.small_world import GB

FIRST_SEED, WORLDS, REAL_WORLDS = 20_261_130, 600, 100
CENT = 0.01
ROUNDING = 1e-9
"""Ways less than a cent apart are equal to the planner, which then prefers fewer machines."""
MORE: dict[str, Callable[[World], World]] = {
    "reads": lambda one: as_given(one.machines, {**one.wanted, "reads": one.wanted["reads"] * 2}, one.data),
    "files": lambda one: as_given(one.machines, one.wanted, {**one.data, **more_files(one.data)}),
    "reads of a tenth of the size": lambda one: as_given(
        one.machines, {**one.wanted, "request": (one.wanted["request"] or 4_096) // 10}, one.data
    ),
    "patience": lambda one: as_given(
        one.machines, {**one.wanted, "latency_ms": min(one.wanted["latency_ms"] or 0.5, 0.5)}, one.data
    ),
    "hours": lambda one: as_given(one.machines, {**one.wanted, "hours": one.wanted["hours"] * 1.5}, one.data),
    "checkpoints": lambda one: as_given(
        one.machines, {**one.wanted, "checkpoint": one.wanted["checkpoint"] + 90 * GB}, one.data
    ),
}


def more_files(data: dict[str, int]) -> dict[str, int]:
    return {"bytes": data["bytes"] * 3, "files": data["files"] * 3}


def planned(one: World) -> Plan | None:
    try:
        return plan(one.spec, one.summary, one.catalog, one.prices)
    except InfeasibleJob:
        return None


def usd(made: Plan | None) -> float | None:
    return made.chosen.usd_expected if made else None


def test_the_plan_costs_what_the_brute_force_finds(record_property: Callable[[str, object], None]) -> None:
    feasible, wrong = 0, []
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS):
        one = random_world(seed)
        found, best = usd(planned(one)), cheapest_usd(one.machines, one.wanted, one.data)
        feasible += best is not None
        if (found is None) != (best is None) or (
            found is not None and best is not None and abs(found - best) > CENT + ROUNDING * best
        ):
            wrong.append((seed, found, best))
    record_property("figure", f"planner = brute force on {WORLDS} worlds from seed {FIRST_SEED}, {feasible} feasible")
    assert wrong == [], f"{len(wrong)} of {WORLDS} seeds differ"
    assert WORLDS / 3 < feasible < WORLDS, "worlds must be feasible and infeasible"


def test_it_does_so_on_the_packaged_machines_too(
    catalog_text: str, prices_text: str, catalog: Catalog, prices: PriceList
) -> None:
    packed, usd_per_hour = json.loads(catalog_text), json.loads(prices_text)["us_east_1_usd_per_hour"]
    feasible, wrong = 0, []
    for seed in range(FIRST_SEED, FIRST_SEED + REAL_WORLDS):
        one = real_world(seed, packed, usd_per_hour, Market(catalog, prices))
        found, best = usd(planned(one)), cheapest_usd(one.machines, one.wanted, one.data)
        feasible += best is not None
        if (found is None) != (best is None) or (found is not None and best is not None and abs(found - best) > CENT):
            wrong.append((seed, found, best))
    assert wrong == []
    assert feasible > REAL_WORLDS / 4


@pytest.mark.parametrize("more", MORE)
def test_more_demand_never_costs_less(more: str) -> None:
    wrong = []
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS, 3):
        one = random_world(seed)
        if more == "checkpoints" and one.wanted["resume"]:
            continue  # a run that resumes from checkpoints loses less than one without any
        less, greater = usd(planned(one)), usd(planned(MORE[more](one)))
        if greater is not None and (less is None or less > greater + CENT):
            wrong.append((seed, less, greater))
    assert wrong == []


def test_the_same_world_gives_the_same_plan_in_every_order_of_types() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS, 10):
        one = random_world(seed)
        turned = as_given(one.machines[::-1], one.wanted, one.data)
        first, again, other = planned(one), planned(one), planned(turned)
        assert first == again
        if first is not None and other is not None:
            assert first.chosen.fleets == other.chosen.fleets
