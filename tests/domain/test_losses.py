"""The average cost counts what is spent again when machines are lost, and more machines are lost more often."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.domain import calibration
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.plan import OptionPlan
from headrace.domain.planner import plan
from tests.domain.small_world import CPU, GB, GPU1, GPU8, SMALL, TB, dataset, job, machine, world

READS = {"read_bytes_per_s": 6 * GB}
MONTH = calibration.HOURS_PER_MONTH


def chosen(small: tuple[Catalog, PriceList] = SMALL, **changes: Any) -> OptionPlan:
    return plan(job(demand=READS, storage="fleet", **changes), dataset(), *small).chosen


def spot(count: int, reclaimed_percent: dict[str, int], **changes: Any) -> OptionPlan:
    catalog, prices = world({GPU8: 8.0, machine("disk.fast"): 0.5}, savings={"gpu.8x": 60})
    prices = prices.model_copy(update={"spot_reclaimed_percent": reclaimed_percent})
    compute = {"accelerator": "h100", "count": 8 * count, "capacity": "spot"}
    given = job(compute=compute, storage="fleet", duration_hours=24, **changes)
    return plan(given, dataset(), catalog, prices).chosen


def test_a_run_that_fails_at_a_loss_pays_for_the_attempts_that_fail() -> None:
    made = chosen(duration_hours=1_000)
    losses = -math.log1p(-made.chance_of_loss)
    assert made.usd_expected == pytest.approx(made.usd_low * (1 + math.expm1(losses) / 2), rel=1e-4)
    assert made.usd_expected > made.usd_low


def test_a_mirrored_storage_node_is_not_missed() -> None:
    alone, mirrored = chosen(duration_hours=100), chosen(duration_hours=100, resilience="mirror")
    assert mirrored.chance_of_loss < alone.chance_of_loss


def test_a_run_that_resumes_loses_less_than_one_that_fails() -> None:
    fails, resumes = chosen(duration_hours=1_000), chosen(duration_hours=1_000, on_node_loss="resume")
    assert resumes.usd_low == fails.usd_low
    assert resumes.usd_expected < fails.usd_expected


def test_checkpoints_bound_what_is_done_again() -> None:
    often = {**READS, "checkpoints": {"bytes": 10**9, "period_s": 600}}
    rare = {**READS, "checkpoints": {"bytes": 10**9, "period_s": 60_000}}
    costs = [
        plan(job(demand=demand, duration_hours=100, on_node_loss="resume"), dataset(), *SMALL).chosen.usd_expected
        for demand in (often, rare)
    ]
    assert costs[0] < costs[1]


def test_spot_machines_are_lost_as_often_as_their_band_says() -> None:
    made = spot(1, {"gpu.8x": 20})
    hours = 24 + (calibration.LAUNCH_S + calibration.ENDING_S) / 3_600
    taken_back = -math.log(0.8) / MONTH * hours
    breaks = (calibration.MACHINE_LOSSES_PER_HOUR + 8 * calibration.ACCELERATOR_LOSSES_PER_HOUR) * hours
    assert made.chance_of_loss == pytest.approx(1 - math.exp(-taken_back - breaks), abs=5e-4)


def test_a_spot_type_without_a_band_counts_as_in_the_worst() -> None:
    assert spot(1, {}).chance_of_loss == spot(1, {"gpu.8x": calibration.SPOT_RECLAIMED_PERCENT}).chance_of_loss


def test_more_machines_are_lost_more_often() -> None:
    assert spot(8, {"gpu.8x": 20}).chance_of_loss > spot(1, {"gpu.8x": 20}).chance_of_loss


def test_fewer_and_larger_machines_are_chosen_where_losses_cost_more_than_they_save() -> None:
    small = world({GPU8: 8.05, GPU1: 1.0, machine("disk.fast"): 0.5})
    spec = {"compute": {"accelerator": "h100", "count": 8}, "storage": "fleet", "demand": {"read_bytes_per_s": GB // 2}}
    brief = plan(job(**spec, duration_hours=1), dataset(3 * TB), *small).chosen
    long = plan(job(**spec, duration_hours=400), dataset(3 * TB), *small).chosen
    assert brief.fleets[-1].instance_type == "gpu.1x"
    assert long.fleets[-1].instance_type == "gpu.8x"


def test_a_run_that_can_hardly_succeed_has_a_large_but_finite_average() -> None:
    made = spot(500, {"gpu.8x": 30}, max_hours=500)
    assert math.isfinite(made.usd_expected)
    assert made.chance_of_loss > 0.99


def test_the_assumptions_say_how_often_machines_are_lost() -> None:
    said = plan(job(demand=READS, storage="fleet"), dataset(), *world({CPU: 1.0, machine("disk"): 0.9})).assumptions
    assert any("a compute node is lost with 0.0073 chance a month; the run then fails" in one for one in said)
