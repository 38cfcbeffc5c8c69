"""Prices and rates that a team knows better than the packaged lists: negotiated, paid in advance, or measured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headrace.domain.catalog import GBPS, MachineType, Market, PriceList
from headrace.domain.model import Model

Price = Annotated[float, Field(gt=0, le=10**6, strict=False)]
"""Above zero, so that nothing is free by a slip."""
Rate = Annotated[float, Field(gt=0, le=10**5, strict=False)]


class Overrides(Model):
    """What replaces the packaged figures."""

    usd_per_hour: dict[str, dict[str, Price]] = {}
    """By region and machine type: negotiated rates on demand."""
    capacity_block_usd_per_hour: dict[str, dict[str, Price]] = {}
    """By region and machine type: what a block that is paid in advance comes to."""
    transfer_usd_per_gb: dict[str, Price] = {}
    """By region: a gigabyte out of it into another region."""
    nic_gbps: dict[str, Rate] = {}
    """By machine type: IP line rate, such as of several interfaces where one is counted."""

    def applied(self, market: Market) -> Market:
        """Return the market with these figures in place of the packaged ones."""
        types = tuple(self._with_nic(one) for one in market.catalog.types)
        return Market(market.catalog.model_copy(update={"types": types}), self.priced(market.prices))

    def _with_nic(self, machine: MachineType) -> MachineType:
        gbps = self.nic_gbps.get(machine.name)
        if gbps is None:
            return machine
        return machine.model_copy(update={"nic_bytes_per_s": round(gbps * GBPS), "nic_basis": "given"})

    def priced(self, prices: PriceList) -> PriceList:
        """Return the price list with these figures in place of the packaged ones."""
        own = self.usd_per_hour.get(prices.region, {})
        return prices.model_copy(
            update={
                "on_demand": {**prices.on_demand, **own},
                "given": tuple(sorted(own)),
                "capacity_blocks": self.capacity_block_usd_per_hour.get(prices.region, {}),
                "transfer_out_usd_per_gb": {**prices.transfer_out_usd_per_gb, **self.transfer_usd_per_gb},
            }
        )
