"""The Prices port of the simulated cloud: one market, which every region has."""

from __future__ import annotations

from headrace.domain.catalog import Catalog, PriceList


class SimulatedPrices:
    """The Prices port from data given at the start."""

    def __init__(self, catalog: Catalog, price_list: PriceList) -> None:
        self._catalog = catalog
        self._price_list = price_list
        self._by_region: dict[str, tuple[Catalog, PriceList]] = {}

    def catalog(self, region: str) -> Catalog:
        """Return the catalog, whatever the region."""
        return self._of(region)[0]

    def price_list(self, region: str) -> PriceList:
        """Return the price list, whatever the region."""
        return self._of(region)[1]

    def _of(self, region: str) -> tuple[Catalog, PriceList]:
        if region not in self._by_region:
            here = {"region": region}
            self._by_region[region] = (self._catalog.model_copy(update=here), self._price_list.model_copy(update=here))
        return self._by_region[region]
