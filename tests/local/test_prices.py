"""The catalog and prices that come with headrace are offered region by region, with their date."""

from __future__ import annotations

from headrace.local.prices import LocalPrices


def test_a_region_has_machines_with_prices() -> None:
    prices = LocalPrices()
    catalog, price_list = prices.catalog("us-east-1"), prices.price_list("us-east-1")
    assert catalog.region == price_list.region == "us-east-1"
    assert catalog.find("i4i.large") is not None
    assert price_list.on_demand["i4i.large"] > 0
    assert catalog.dated.startswith("20")
    assert price_list.dated.startswith("20")


def test_a_region_is_read_once() -> None:
    assert LocalPrices().catalog("us-east-1") is LocalPrices().catalog("us-east-1")


def test_an_unknown_region_offers_nothing() -> None:
    assert LocalPrices().catalog("xx-nowhere-1").types == ()
    assert LocalPrices().price_list("xx-nowhere-1").on_demand == {}
