"""What a team knows better replaces the packaged figures, and is said in the plan."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Market
from headrace.domain.errors import BadSettings
from headrace.domain.overrides import Overrides
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from headrace.domain.settings_text import parse_settings
from tests.domain.small_world import CHEAP, CPU, FAST, GB, GPU8, SMALL, dataset, job, world

READS = {"read_bytes_per_s": 6 * GB}
LOCAL: dict[str, Any] = {"storage": "local", "demand": {}}
BLOCK = {"capacity": "capacity-block", "reservation": "cr-0123456789abcdef0"}
PLAIN_WORLD = Market(*SMALL)
GPU_WORLD = Market(*world({GPU8: 8.0, FAST: 2.0}))


def overrides(text: str) -> Overrides:
    return parse_settings(text, Overrides, "prices.yaml")


def made(text: str, small: Market = PLAIN_WORLD, **changes: Any) -> Plan:
    return plan(job(**{"demand": READS, **changes}), dataset(), *overrides(text).applied(small))


def test_a_negotiated_rate_replaces_the_list_price_and_is_said_to() -> None:
    found = made("usd_per_hour: {us-east-1: {disk.fast: 0.5}}")
    assert found.chosen.fleets[0].instance_type == "disk.fast"
    assert found.chosen.fleets[0].usd_per_hour_each == 0.5
    assert "disk.fast: the price is from the overrides, not from the list" in found.assumptions


def test_rates_of_another_region_change_nothing() -> None:
    assert made("usd_per_hour: {eu-west-1: {disk.fast: 0.5}}") == made("{}")


def test_a_type_without_a_list_price_can_be_used_at_a_negotiated_one() -> None:
    catalog, prices = world({CPU: 1.0, CHEAP: 0.9})
    with_fast = Market(catalog.model_copy(update={"types": (*catalog.types, FAST)}), prices)
    assert made("{}", with_fast).chosen.fleets[0].instance_type == "disk.cheap"
    found = made("usd_per_hour: {us-east-1: {disk.fast: 0.1}}", with_fast)
    assert found.chosen.fleets[0].instance_type == "disk.fast"


def test_more_interfaces_than_one_can_be_given_for_a_type() -> None:
    found = made("nic_gbps: {disk.cheap: 400}")
    assert (found.chosen.fleets[0].count, found.chosen.fleets[0].nic_bytes_per_s) == (1, 50 * GB)
    assert "disk.cheap: 50 GB/s of IP traffic, as the overrides give it" in found.assumptions


def test_a_transfer_that_nobody_publishes_can_be_priced() -> None:
    away: dict[str, Any] = {
        "data": {"source": "s3://datasets/a/", "region": "eu-south-2"},
        "compute": {"instance_type": "cpu.large", "region": "us-east-1"},
    }
    found = made("transfer_usd_per_gb: {eu-south-2: 0.5}", **away)
    assert found.chosen.transfer_usd == pytest.approx(50.0)


def test_a_capacity_block_costs_what_the_team_paid_and_is_never_free() -> None:
    compute = {"accelerator": "h100", "count": 8, **BLOCK}
    listed = made("{}", GPU_WORLD, compute=compute, **LOCAL)
    (on_demand,) = {one.usd_per_hour_each for one in listed.chosen.fleets if one.role == "compute"}
    assert on_demand == GPU_WORLD[1].on_demand["gpu.8x"]
    assert any(
        "hours count at the price of the list on demand, as its own is unknown" in one for one in listed.assumptions
    )
    text = "capacity_block_usd_per_hour: {us-east-1: {gpu.8x: 5.0}}"
    fleet = made(text, GPU_WORLD, compute=compute, **LOCAL).fleet("compute")
    assert fleet is not None
    assert (fleet.market, fleet.usd_per_hour_each, fleet.reservation) == ("capacity-block", 5.0, BLOCK["reservation"])


def test_a_reservation_bills_whether_it_is_used_or_not() -> None:
    compute = {"accelerator": "h100", "count": 8, "reservation": BLOCK["reservation"]}
    found = made("{}", GPU_WORLD, compute=compute, **LOCAL)
    assert any("bill whether they are used or not" in one for one in found.assumptions)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("usd_per_hour: {us-east-1: {p5.48xlarge: 0}}", "usd_per_hour.us-east-1.p5.48xlarge: Input should be greater"),
        ("usd_per_hours: {}", "line 1, column 1, usd_per_hours: Extra inputs are not permitted"),
        ("nic_gbps: {a.b: fast}", "line 1, column 12, nic_gbps.a.b: Input should be a valid number"),
        ("- 1", "it is not a mapping of names and values"),
        ("nic_gbps: {a.b: 1, a.b: 2}", "a.b"),
    ],
)
def test_bad_overrides_are_refused_with_their_place(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=r"prices\.yaml is not valid") as found:
        overrides(text)
    assert said in str(found.value)


def test_accelerated_machines_that_train_together_are_placed_together() -> None:
    compute = {"accelerator": "h100", "count": 16}
    both = made("{}", GPU_WORLD, compute=compute, **LOCAL).fleet("compute")
    alone = made("{}", GPU_WORLD, compute={**compute, "count": 8}, **LOCAL).fleet("compute")
    assert both is not None
    assert alone is not None
    assert (both.placement, alone.placement) == ("cluster", "one zone")


@pytest.mark.parametrize(
    ("compute", "placement", "said"),
    [
        ({"placement": "cluster"}, "cluster only", "as the job asks, or not at all"),
        ({"reservation": BLOCK["reservation"]}, "one zone", "machines in a reservation stand where it is"),
        ({}, "cluster", "outside it if it is full"),
    ],
)
def test_a_plan_says_where_machines_that_train_together_are_asked_for(
    compute: dict[str, str], placement: str, said: str
) -> None:
    plan = made("{}", GPU_WORLD, compute={"accelerator": "h100", "count": 16, **compute}, **LOCAL)
    fleet = plan.fleet("compute")
    assert fleet is not None
    assert fleet.placement == placement
    assert any(said in reason for reason in plan.chosen.reasons)
