"""The compute and storage fleets that a plan may choose from, and why the other types may not be used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from headrace.domain import calibration
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import Compute
from headrace.domain.model import Capacity
from headrace.domain.plan import Rejection
from headrace.domain.unknown_names import unknown_accelerator, unknown_type


@dataclass(frozen=True)
class ComputeFleet:
    """So many machines of one type; the prices are of one machine."""

    machine: MachineType
    count: int
    usd_per_hour: float
    on_demand_usd_per_hour: float
    market: Capacity
    losses_per_hour: float = 0.0
    """How often one machine is lost: it breaks, or the spot market takes it back."""


@dataclass(frozen=True)
class StorageOffer:
    """One type as a storage node."""

    machine: MachineType
    usd_per_hour: float
    request_bytes: int = calibration.READ_AHEAD_BYTES
    """Useful bytes of the reads that it serves."""

    @cached_property
    def served_bytes_per_s(self) -> int:
        """What readers get from one node: its SSDs or its share of the NIC, whichever is less."""
        return math.floor(min(self.machine.read_bytes_per_s(self.request_bytes), nic_share(self.machine)))


@dataclass
class Rejections:
    """Candidates left out, counted by reason, in the order first met."""

    found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, reason: str, example: str, candidates: int = 1) -> None:
        """Count more candidates; the first example stays."""
        count, first = self.found.get(reason, (0, example))
        self.found[reason] = (count + candidates, first)

    def listed(self) -> tuple[Rejection, ...]:
        """Return them, most candidates first."""
        rows = (Rejection(reason=reason, candidates=n, example=one) for reason, (n, one) in self.found.items())
        return tuple(sorted(rows, key=lambda row: (-row.candidates, row.reason)))


def nic_share(machine: MachineType) -> float:
    """Return bytes/s of the NIC that storage traffic can use."""
    return calibration.NIC_FRACTION * machine.nic_bytes_per_s


def compute_fleets(
    compute: Compute, catalog: Catalog, prices: PriceList, rejections: Rejections
) -> tuple[ComputeFleet, ...]:
    """Return every fleet that gives what the job asks for, in catalog order.

    Raises InfeasibleJob when there is none, with the names that are close.
    """
    if compute.instance_type is not None:
        return (_named_fleet(compute, compute.instance_type, catalog, prices),)
    return _accelerated_fleets(compute, compute.accelerator or "", catalog, prices, rejections)


def _named_fleet(compute: Compute, name: str, catalog: Catalog, prices: PriceList) -> ComputeFleet:
    machine = catalog.find(name)
    if machine is None:
        raise InfeasibleJob(f"compute.instance_type {unknown_type(name, catalog)}")
    refusal = _unpriced(machine, compute, prices)
    if refusal:
        raise InfeasibleJob(f"compute.instance_type {name!r} cannot be planned: {refusal}")
    return _fleet(machine, compute.count, compute, prices)


def _accelerated_fleets(
    compute: Compute, accelerator: str, catalog: Catalog, prices: PriceList, rejections: Rejections
) -> tuple[ComputeFleet, ...]:
    carriers = [one for one in catalog.types if one.carries(accelerator)]
    if not carriers:
        raise InfeasibleJob(f"compute.accelerator {unknown_accelerator(accelerator, catalog)}")
    fleets = []
    for machine in carriers:
        refusal = _unpriced(machine, compute, prices) or (
            "bare metal takes longer to start" if machine.bare_metal else ""
        )
        if refusal:
            rejections.add(f"compute: {refusal}", machine.name)
        else:
            fleets.append(_fleet(machine, math.ceil(compute.count / machine.accelerators), compute, prices))
    if not fleets:
        raise InfeasibleJob(
            f"no machine with {accelerator} can be planned in {catalog.region}: "
            + "; ".join(f"{row.reason} ({row.example})" for row in rejections.listed())
        )
    return tuple(fleets)


def _unpriced(machine: MachineType, compute: Compute, prices: PriceList) -> str:
    if machine.name not in _known_prices(compute, prices):
        return f"no price known in {prices.region}; write it in the price overrides"
    if compute.capacity == "spot" and not machine.spot:
        return "not sold on the spot market"
    return ""


def _known_prices(compute: Compute, prices: PriceList) -> Mapping[str, float]:
    """Return USD per hour by type; nobody publishes those of blocks, so where none is given the list price counts."""
    return prices.on_demand | (prices.capacity_blocks if compute.capacity == "capacity-block" else {})


def _fleet(machine: MachineType, count: int, compute: Compute, prices: PriceList) -> ComputeFleet:
    list_price = _known_prices(compute, prices)[machine.name]
    saving = prices.spot_savings_percent.get(machine.name, 0) if compute.capacity == "spot" else 0
    return ComputeFleet(
        machine=machine,
        count=count,
        usd_per_hour=round(list_price * (100 - saving) / 100, 6),
        on_demand_usd_per_hour=list_price,
        market=compute.capacity,
        losses_per_hour=_losses_per_hour(machine, compute, prices),
    )


def _losses_per_hour(machine: MachineType, compute: Compute, prices: PriceList) -> float:
    """Return how often the machine breaks and, on the spot market, is taken back (where unknown: the worst band)."""
    breaks = calibration.MACHINE_LOSSES_PER_HOUR + machine.accelerators * calibration.ACCELERATOR_LOSSES_PER_HOUR
    if compute.capacity != "spot":
        return breaks
    percent = prices.spot_reclaimed_percent.get(machine.name, calibration.SPOT_RECLAIMED_PERCENT)
    return breaks - math.log1p(-percent / 100) / calibration.HOURS_PER_MONTH


def storage_offers(
    catalog: Catalog,
    prices: PriceList,
    rejections: Rejections,
    request_bytes: int = calibration.READ_AHEAD_BYTES,
) -> tuple[StorageOffer, ...]:
    """Return every type that can be a storage node for reads of that size, in catalog order."""
    offers = []
    for machine in catalog.types:
        refusal = no_storage_node(machine, prices)
        if refusal:
            rejections.add(f"storage: {refusal}", machine.name)
        else:
            offers.append(StorageOffer(machine, prices.on_demand[machine.name], request_bytes))
    return tuple(offers)


def no_storage_node(machine: MachineType, prices: PriceList) -> str:
    """Return why the type can be no storage node, or nothing when it can."""
    checks = (
        (machine.disk_kind == "hdd", "its local disks are HDDs, too slow for random reads"),
        (not machine.ssd_bytes, "no local SSD"),
        (
            not machine.ssd_read_bytes_per_s or not machine.ssd_write_bytes_per_s,
            "the rate of its SSDs is measured nowhere",
        ),
        (not machine.current, "a former generation"),
        (machine.bare_metal, "bare metal takes longer to start and costs no less"),
        (machine.name not in prices.on_demand, f"no price known in {prices.region}"),
    )
    return next((reason for applies, reason in checks if applies), "")


def same_layout(chosen: StorageOffer, offers: Iterable[StorageOffer]) -> list[StorageOffer]:
    """Return the types that could stand in for the chosen one, cheapest first: as many SSDs, as large and as fast."""
    machine = chosen.machine
    able = [
        one
        for one in offers
        if one.machine.name != machine.name
        and one.machine.arch == machine.arch
        and one.machine.disk_count == machine.disk_count
        and one.machine.disk_bytes >= machine.disk_bytes
    ]
    return sorted(able, key=lambda one: (one.usd_per_hour, one.machine.name))
