"""Services that a run never chooses are compared at checked prices only, and the rest is named."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Catalog, PriceList, ServicePrice
from headrace.domain.plan import Comparison, Plan
from headrace.domain.planner import plan
from tests.domain.small_world import FAST, GB, TB, dataset, diskless, job, world

HOURS_PER_MONTH = 730
READER = diskless("cpu.large", ebs_bytes_per_s=2 * GB, ebs_iops=80_000)


@pytest.fixture(scope="module")
def priced(prices: PriceList) -> tuple[Catalog, PriceList]:
    catalog, small = world({READER: 1.0, FAST: 2.0})
    return catalog, small.model_copy(update={"services": prices.services})


def made(small: tuple[Catalog, PriceList], total_bytes: int = TB, **demand: Any) -> Plan:
    return plan(job(demand={"read_bytes_per_s": GB, **demand}), dataset(total_bytes, 10**6), *small)


def row(found: Plan, name: str) -> Comparison:
    return next(one for one in found.comparisons if name in one.name)


def test_gp3_costs_its_bytes_its_operations_and_its_throughput(priced: tuple[Catalog, PriceList]) -> None:
    found = row(made(priced), "gp3")
    gib, iops, mib_per_s = 1_030, 7_630, GB / 2**20
    monthly = gib * 0.08 + (iops - 3_000) * 0.005 + (mib_per_s - 125) * 0.04
    assert found.usd_per_hour == pytest.approx(1.0 + monthly / HOURS_PER_MONTH, abs=1e-4)
    assert f"1 volumes of {gib:,} GiB, {iops:,} IOPS and 1 GB/s each" in found.because


def test_io2_pays_each_tier_of_its_operations(priced: tuple[Catalog, PriceList]) -> None:
    found = row(made(priced, request_bytes=16_384), "io2")
    monthly = 1_030 * 0.125 + 32_000 * 0.065 + (61_036 - 32_000) * 0.046
    assert found.usd_per_hour == pytest.approx(1.0 + monthly / HOURS_PER_MONTH, abs=1e-4)


def test_fsx_is_sized_by_capacity_or_by_throughput_in_whole_steps(priced: tuple[Catalog, PriceList]) -> None:
    found = row(made(priced), "scratch")
    assert found.because.startswith("7.2 TiB, sized by its throughput")
    assert found.usd_per_hour == pytest.approx(1.0 + 7.2 * 1024 * 0.14 / HOURS_PER_MONTH, abs=1e-4)
    assert row(made(priced, 400 * TB), "scratch").because.startswith("400.8 TiB, sized by its capacity")


def test_unchecked_prices_give_no_row_and_are_named(priced: tuple[Catalog, PriceList]) -> None:
    found = made(priced)
    assert len(found.comparisons) == 4
    assert [one.split(":")[0] for one in found.not_compared] == [
        "fsx_lustre persistent SSD 250 MB/s/TiB",
        "fsx_lustre persistent SSD 500 MB/s/TiB",
        "fsx_lustre persistent SSD 1000 MB/s/TiB",
    ]


def test_a_missing_price_of_one_part_leaves_the_whole_row_out(priced: tuple[Catalog, PriceList]) -> None:
    catalog, prices = priced
    fewer = tuple(one for one in prices.services if one.name != "ebs gp3 IOPS above 3000")
    found = made((catalog, prices.model_copy(update={"services": fewer})))
    assert [one.name for one in found.comparisons if "gp3" in one.name] == []


def test_a_region_without_checked_prices_has_no_rows() -> None:
    found = made(world({READER: 1.0, FAST: 2.0}))
    assert found.comparisons == ()
    assert found.not_compared == ("EBS and FSx for Lustre: no checked price in us-east-1",)


def test_a_link_that_is_too_slow_is_said_to_be(priced: tuple[Catalog, PriceList]) -> None:
    found = made(priced, read_bytes_per_s=3 * GB)
    assert row(found, "gp3").usd_per_hour is None
    assert row(found, "gp3").because == "the link of cpu.large to EBS sustains 2 GB/s of 3 GB/s needed"
    assert "takes 24" in row(made(priced, 400 * TB), "gp3").because


def test_a_comparison_is_never_chosen(priced: tuple[Catalog, PriceList]) -> None:
    catalog, prices = priced
    free = tuple(ServicePrice(name=one.name, unit=one.unit, usd=0.0, status="two_sources") for one in prices.services)
    with_free = made((catalog, prices.model_copy(update={"services": free})))
    assert with_free.chosen == made(priced).chosen
    assert all(one.usd_low < with_free.chosen.usd_low for one in with_free.comparisons if one.usd_low is not None)
