"""The Prices port from the catalog and price list that come with headrace."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

from headrace.domain.benchmarks import Benchmarks, parse_benchmarks
from headrace.domain.catalog import Catalog, Market, PriceList, parse_catalog, parse_prices
from headrace.domain.overrides import Overrides


class LocalPrices:
    """The Prices port; the data carry the date they were read, and no network is asked."""

    def __init__(self, overrides: Overrides | None = None) -> None:
        self._overrides = overrides

    def catalog(self, region: str) -> Catalog:
        """Return the machine types offered in the region; none in a region that the data do not have."""
        return self._market(region).catalog

    def price_list(self, region: str) -> PriceList:
        """Return list prices in USD per hour; none in a region that the data do not have."""
        return self._market(region).prices

    def _market(self, region: str) -> Market:
        packaged = Market(_catalog(region), _price_list(region))
        return self._overrides.applied(packaged) if self._overrides else packaged


def read_benchmarks() -> Benchmarks:
    """Return the published results that come with headrace."""
    return parse_benchmarks(_packaged_text("benchmarks.json.gz"))


@lru_cache(maxsize=4)
def _catalog(region: str) -> Catalog:
    return parse_catalog(_packaged_text("catalog.json.gz"), region)


@lru_cache(maxsize=4)
def _price_list(region: str) -> PriceList:
    return parse_prices(_packaged_text("prices.json.gz"), region)


def _packaged_text(name: str) -> str:
    return gzip.decompress((files("headrace") / "data" / name).read_bytes()).decode()
