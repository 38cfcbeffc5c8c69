"""The Prices port from the catalog and price list that come with headrace: a plan asks no network."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from headrace.domain.catalog import Catalog, PriceList, parse_catalog, parse_prices

REGIONS = 8
"""How many regions one process keeps; a function plans for a few at most."""


class PackagedPrices:
    """The Prices port; the data carry the date they were read."""

    def catalog(self, region: str) -> Catalog:
        """Return the machine types offered in the region; none in a region that the data do not have."""
        return _catalog(region)

    def price_list(self, region: str) -> PriceList:
        """Return list prices in USD per hour; none in a region that the data do not have."""
        return _price_list(region)

    def arch_of(self, region: str, instance_type: str) -> Literal["x86_64", "arm64"]:
        """Return the processor architecture of a type. Raises KeyError for one that the region does not offer."""
        found = _catalog(region).find(instance_type)
        if found is None:
            raise KeyError(f"{instance_type} is not among the types that {region} offers")
        return found.arch


@lru_cache(maxsize=REGIONS)
def _catalog(region: str) -> Catalog:
    return parse_catalog(_text("catalog.json.gz"), region)


@lru_cache(maxsize=REGIONS)
def _price_list(region: str) -> PriceList:
    return parse_prices(_text("prices.json.gz"), region)


def _text(name: str) -> str:
    return gzip.decompress((files("headrace") / "data" / name).read_bytes()).decode()
