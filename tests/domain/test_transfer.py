"""Data in another region cost what is published per gigabyte, and are never free."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Market, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.plan import Plan, RegionChoice
from headrace.domain.planner import plan
from headrace.domain.transfer import away_bytes
from tests.domain.small_world import CHEAP, CPU, GB, TB, dataset, job, machine, refusal, world

HOME, AWAY = "us-east-1", "eu-west-1"
USD_PER_GB = 0.05
EVERYWHERE = {HOME: 0.02, AWAY: USD_PER_GB}
FIELDS = {"demand": {"read_bytes_per_s": 3 * GB}, "data": {"source": "s3://datasets/a/", "region": AWAY}}


def market(region: str = HOME, times: float = 1.0, **types: Any) -> Market:
    catalog, prices = world({CPU: 1.0 * times, CHEAP: 0.9 * times})
    known = {"region": region, "transfer_out_usd_per_gb": EVERYWHERE}
    return Market(catalog.model_copy(update={"region": region}), prices.model_copy(update=known | types))


def made(here: Market, there: Market | None = None, count: int = 1, **changes: Any) -> Plan:
    compute = {"instance_type": "cpu.large", "region": HOME, "count": count}
    elsewhere = {AWAY: there} if there else {}
    return plan(job(compute=compute, **{**FIELDS, **changes}), dataset(TB), *here, elsewhere)


def choice(found: Plan, way: str) -> RegionChoice:
    return next(one for one in found.regions if one.way == way)


def test_machines_are_where_the_job_asks_or_where_its_data_are() -> None:
    assert job(**FIELDS).region == AWAY
    assert job(**FIELDS).other_regions == ()
    asked = job(compute={"instance_type": "cpu.large", "region": HOME}, **FIELDS)
    assert (asked.region, asked.other_regions) == (HOME, (AWAY,))


def test_inputs_that_were_counted_apart_are_charged_apart() -> None:
    inputs = [
        {"source": "s3://first/b/", "name": "one", "region": HOME},
        {"source": "s3://second/d/", "name": "two", "region": AWAY},
    ]
    counted = DatasetSummary(files=2, bytes=100, largest_bytes=70, parts=(), input_bytes=(30, 70))
    assert away_bytes(job(data=inputs), counted) == {AWAY: 70}
    assert away_bytes(job(data=inputs), counted.model_copy(update={"input_bytes": ()})) == {AWAY: 100}


@pytest.mark.parametrize(("resilience", "times"), [("none", 1), ("mirror", 2)])
def test_what_is_moved_is_part_of_the_price(resilience: str, times: int) -> None:
    near = job(compute={"instance_type": "cpu.large", "region": AWAY}, resilience=resilience, **FIELDS)
    at_home = plan(near, dataset(TB), *market(AWAY)).chosen
    moved = made(market(), resilience=resilience).chosen
    assert moved.transfer_usd == pytest.approx(times * 1_000 * USD_PER_GB)
    assert at_home.transfer_usd == 0
    assert moved.usd_low > at_home.usd_low + moved.transfer_usd


def test_local_storage_moves_the_data_to_every_node() -> None:
    own = world({machine("cpu.large"): 1.0})
    here = Market(own[0], own[1].model_copy(update={"transfer_out_usd_per_gb": EVERYWHERE}))
    assert made(here, count=3, storage="local").chosen.transfer_usd == pytest.approx(3 * 1_000 * USD_PER_GB)


def test_reading_across_pays_in_every_epoch() -> None:
    found = made(market(), storage="direct", duration_hours=10).chosen
    passes = 3 * GB * 36_000 / TB
    assert found.transfer_usd == pytest.approx(passes * 1_000 * USD_PER_GB)


def test_a_transfer_without_a_published_price_is_refused_not_free() -> None:
    here = market(transfer_out_usd_per_gb={HOME: 0.02})
    said = refusal(job(compute={"instance_type": "cpu.large", "region": HOME}, **FIELDS), (here.catalog, here.prices))
    assert "no price is known for moving data from eu-west-1 to us-east-1, and it is not counted as free" in said


def test_the_pair_of_regions_with_its_own_price_has_it_both_ways(prices: PriceList) -> None:
    assert prices.transfer_usd_per_gb("us-east-1", "us-east-2") == 0.01
    assert prices.transfer_usd_per_gb("us-east-2", "us-east-1") == 0.01
    assert prices.transfer_usd_per_gb("us-east-1", "us-west-2") == 0.02
    assert prices.transfer_usd_per_gb("us-east-1", "us-east-1") == 0.0
    assert prices.transfer_usd_per_gb("eu-south-2", "us-east-1") is None


def test_one_region_has_no_choices() -> None:
    assert plan(job(**FIELDS), dataset(TB), *market(AWAY)).regions == ()


def test_two_regions_have_four_ways_and_lazy_caching_is_not_available() -> None:
    found = made(market(), market(AWAY, 2.0))
    assert [one.way for one in found.regions] == ["copy once", "cache lazily", "read across", "move the machines"]
    assert [one.is_available for one in found.regions] == [True, False, True, True]
    assert choice(found, "copy once").usd_low == found.chosen.usd_low
    assert choice(found, "read across").transfer_usd_per_epoch == pytest.approx(1_000 * USD_PER_GB)


def test_copying_pays_against_dearer_machines_after_enough_epochs() -> None:
    found = made(market(), market(AWAY, 2.0))
    moving = choice(found, "move the machines")
    epoch_hours = TB / (3 * GB) / 3_600
    dearer_by = found.chosen.usd_per_hour
    assert moving.break_even_epochs == pytest.approx(1_000 * USD_PER_GB / (dearer_by * epoch_hours), rel=1e-3)
    assert moving.region == AWAY


def test_copying_never_pays_against_cheaper_machines() -> None:
    moving = choice(made(market(), market(AWAY, 0.5)), "move the machines")
    assert moving.break_even_epochs is None
    assert moving.because.endswith("copying never pays")


def test_inputs_that_say_no_region_stay_where_they_are_when_machines_move() -> None:
    inputs = [{"source": "s3://first/b/", "name": "one"}, {"source": "s3://second/d/", "name": "two", "region": AWAY}]
    there = choice(made(market(), market(AWAY), data=inputs), "move the machines")
    assert there.transfer_usd > 0


def test_a_region_without_machines_at_hand_is_said_to_be() -> None:
    moving = choice(made(market()), "move the machines")
    assert (moving.is_available, moving.usd_low) == (False, None)
    assert moving.because == "the machines and prices of eu-west-1 are not at hand"
