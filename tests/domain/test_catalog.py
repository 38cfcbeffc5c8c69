"""The catalog reads machines as they are: no burst, no EFA, no hard disk taken for an SSD, no invented price."""

from __future__ import annotations

import pytest

from headrace.domain.catalog import Catalog, PriceList, parse_catalog, parse_prices

GBIT = 10**9 // 8


def test_a_storage_machine_has_its_published_shape(catalog: Catalog) -> None:
    machine = catalog.find("i3en.24xlarge")
    assert machine is not None
    assert (machine.disk_count, machine.disk_bytes, machine.nic_bytes_per_s) == (8, 7_500 * 10**9, 100 * GBIT)
    assert (machine.ssd_read_bytes_per_s, machine.ssd_basis) == (16_349_396_992, "measured")


def test_hard_disks_are_no_ssds(catalog: Catalog) -> None:
    found = [one for one in catalog.types if one.disk_kind == "hdd"]
    assert {one.name.partition(".")[0] for one in found} == {"d3", "d3en"}
    assert {(one.disk_count, one.disk_bytes, one.ssd_read_bytes_per_s) for one in found} == {(0, 0, 0)}


@pytest.mark.parametrize(
    ("name", "gbps", "basis"),
    [
        ("p5.48xlarge", 100, "override"),
        ("p5en.48xlarge", 100, "override"),
        ("p4d.24xlarge", 100, "one_card"),
        ("p6-b200.48xlarge", 200, "one_card"),
        ("trn1.32xlarge", 100, "one_card"),
        ("g6e.48xlarge", 400, "baseline"),
        ("c6in.32xlarge", 200, "baseline"),
        ("i8ge.48xlarge", 180, "baseline"),
        ("c7i.large", 0.781, "baseline"),
    ],
)
def test_networks_are_sustained_ip_rates_of_one_interface(catalog: Catalog, name: str, gbps: float, basis: str) -> None:
    machine = catalog.find(name)
    assert machine is not None
    assert (machine.nic_bytes_per_s, machine.nic_basis) == (round(gbps * GBIT), basis)


def test_rates_of_a_whole_machine_are_not_multiplied_by_its_disks(catalog: Catalog) -> None:
    machine = catalog.find("i7ie.24xlarge")
    assert machine is not None
    assert machine.ssd_read_bytes_per_s == 24_913_655_808


def test_no_machine_reads_faster_than_its_disks_could_over_pcie(catalog: Catalog) -> None:
    assert all(one.ssd_read_bytes_per_s <= one.disk_count * 8 * 10**9 for one in catalog.types)


def test_accelerators_are_found_by_kind_and_by_memory(catalog: Catalog) -> None:
    assert [one.name for one in catalog.types if one.carries("a100")] == ["p4d.24xlarge", "p4de.24xlarge"]
    assert [one.name for one in catalog.types if one.carries("a100-80gb")] == ["p4de.24xlarge"]


def test_a_fraction_of_an_accelerator_is_none(catalog: Catalog) -> None:
    assert not any(one.carries("l4") for one in catalog.types if one.name.startswith("g6f."))


def test_a_region_offers_its_own_types(catalog_text: str) -> None:
    west, east = parse_catalog(catalog_text, "us-west-2"), parse_catalog(catalog_text, "me-south-1")
    assert west.find("p6-b300.48xlarge") is not None
    assert east.find("p5.48xlarge") is None
    assert len(east.types) < len(west.types)


def test_an_unknown_region_offers_nothing(catalog_text: str, prices_text: str) -> None:
    assert parse_catalog(catalog_text, "mars-north-1").types == ()
    assert parse_prices(prices_text, "mars-north-1").on_demand == {}


def test_close_names_are_offered_for_an_unknown_one(catalog: Catalog) -> None:
    assert "p5.48xlarge" in catalog.close_types("p5.48xlarg")


def test_prices_of_us_east_1_are_list_prices(prices: PriceList) -> None:
    assert prices.on_demand["i3en.24xlarge"] == 10.848
    assert "trn2.48xlarge" not in prices.on_demand


def test_elsewhere_only_families_with_a_known_ratio_are_priced(prices_text: str) -> None:
    frankfurt = parse_prices(prices_text, "eu-central-1")
    assert frankfurt.on_demand["i3en.24xlarge"] == round(10.848 * 1.1947, 6)
    assert {name.partition(".")[0] for name in frankfurt.on_demand} == {"i3en", "i4i", "i7ie", "c5n", "p4d", "p4de"}


def test_spot_savings_carry_their_own_date(prices: PriceList) -> None:
    assert prices.spot_dated < prices.dated
    assert 0 < prices.spot_savings_percent["p4d.24xlarge"] < 100
