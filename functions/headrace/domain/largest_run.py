"""The largest public run again: what the model says its own storage can serve, and what headrace would have paid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.domain import calibration
from headrace.domain.benchmarks import Benchmarks, LargestRun
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import Need, need_of
from headrace.domain.fleets import ComputeFleet, Rejections, StorageOffer, compute_fleets, storage_offers
from headrace.domain.job import Compute, DataInput, Demand, JobSpec, Results
from headrace.domain.model import Contract
from headrace.domain.sizing import Size, fleet_sizes

UNBOUNDED = 100_000
"""Storage nodes allowed where the question is what the limit on their number costs."""
FRACTIONS = (0.60, 0.66, calibration.NIC_FRACTION, calibration.NIC_FRACTION_SEEN, 0.80, 0.90)
"""Shares of a NIC's line rate that the sensitivity is printed for; 0.66 is what the run's readers reached."""


class FleetFigure(Contract):
    """The cheapest storage fleet under some condition."""

    condition: str
    machines: str
    nodes: int
    usd_per_hour: float
    share_of_bill: float
    """Of what the run's own storage costs on demand."""


class Sensitivity(Contract):
    """What another share of the NIC would mean."""

    nic_fraction: float
    own_capacity_bytes_per_s: float
    cheapest: FleetFigure


class LargestRunReplay(Contract):
    """The largest public run, measured and modelled."""

    submitter: str
    storage: str
    measured_bytes_per_s: tuple[float, ...]
    """Reads of each published row, least first."""
    capacity_bytes_per_s: float
    """What its storage can serve at the highest share of the NIC that was seen."""
    capacity_basis: str
    own_usd_per_hour: float
    figures: tuple[FleetFigure, ...]
    sensitivity: tuple[Sensitivity, ...]


class _Run:
    """The run's demand and compute, as a job that must be fed from a mirrored storage fleet."""

    def __init__(self, run: LargestRun, read_bytes_per_s: float, catalog: Catalog, prices: PriceList) -> None:
        self.dataset = DatasetSummary(
            files=run.files, bytes=run.files * run.file_bytes, largest_bytes=run.file_bytes, parts=()
        )
        self.job = job_of(run, read_bytes_per_s)
        self.catalog, self.prices = catalog, prices
        self.compute: ComputeFleet = compute_fleets(self.job.compute, catalog, prices, Rejections())[0]
        self.need: Need = need_of(self.job, self.dataset, self.compute.machine, run.compute_count, catalog.workloads)
        own = catalog.find(run.storage_type)
        if own is None:
            raise ValueError(f"{run.storage_type}, on which the run was, is not in {catalog.region}")
        self.own = StorageOffer(own, prices.on_demand[own.name])
        self.bill = run.storage_count * self.own.usd_per_hour

    def cheapest(
        self, condition: str, offers: Iterable[StorageOffer], limit: int = calibration.STORAGE_NODES_MAX
    ) -> FleetFigure:
        """Return the cheapest fleet of those offers, by the hour."""
        sized = (
            (size.nodes * offer.usd_per_hour, size.nodes, offer.machine.name)
            for offer in offers
            for size in self._sizes(offer, limit)
        )
        usd, nodes, name = min(sized)
        return FleetFigure(
            condition=condition,
            machines=f"{nodes} x {name}",
            nodes=nodes,
            usd_per_hour=round(usd, 2),
            share_of_bill=round(usd / self.bill, 4),
        )

    def _sizes(self, offer: StorageOffer, limit: int) -> Iterable[Size]:
        found = fleet_sizes(self.job, self.dataset, self.need, self.compute, offer, limit)
        return () if isinstance(found, str) else found


def replay_largest_run(benchmarks: Benchmarks, catalog: Catalog, prices: PriceList) -> LargestRunReplay:
    """Return the largest public run measured and modelled, and what it would cost headrace."""
    run, rows = benchmarks.largest, benchmarks.largest_rows
    measured = tuple(round(row.read_bytes_per_s) for row in rows)
    offers = storage_offers(catalog, prices, Rejections())
    given = _Run(run, measured[0], catalog, prices)
    seen = calibration.NIC_FRACTION_SEEN
    return LargestRunReplay(
        submitter=run.submitter,
        storage=f"{run.storage_count} x {run.storage_type}",
        measured_bytes_per_s=measured,
        capacity_bytes_per_s=_capacity(given.own.machine, run.storage_count, seen),
        capacity_basis=f"{seen:.1%} of line rate, the most that a host of this very run served, or its SSDs",
        own_usd_per_hour=round(given.bill, 2),
        figures=tuple(_figures(given, _Run(run, measured[-1], catalog, prices), offers)),
        sensitivity=tuple(_sensitivity(given, run, offers, fraction) for fraction in FRACTIONS),
    )


def _figures(slow: _Run, fast: _Run, offers: tuple[StorageOffer, ...]) -> Iterable[FleetFigure]:
    x86 = [one for one in offers if one.machine.arch == "x86_64"]
    yield slow.cheapest("on demand", offers)
    yield slow.cheapest("on demand, x86 only", x86)
    yield slow.cheapest("on demand, any number of nodes", offers, UNBOUNDED)
    yield slow.cheapest("spot, at published savings", list(_spot(offers, slow.prices)))
    yield fast.cheapest("on demand, reads of the faster row", offers)


def _spot(offers: Iterable[StorageOffer], prices: PriceList) -> Iterable[StorageOffer]:
    """Yield the offers that have a published saving, at their spot price."""
    for one in offers:
        saving = prices.spot_savings_percent.get(one.machine.name)
        if one.machine.spot and saving is not None:
            yield StorageOffer(one.machine, one.usd_per_hour * (100 - saving) / 100)


def _sensitivity(given: _Run, run: LargestRun, offers: Iterable[StorageOffer], fraction: float) -> Sensitivity:
    """Return what the run takes if NVMe/TCP gets that share of a NIC: every NIC is scaled, and nothing else."""
    scaled = [replace(one, machine=_with_nic_fraction(one.machine, fraction)) for one in offers]
    return Sensitivity(
        nic_fraction=fraction,
        own_capacity_bytes_per_s=_capacity(given.own.machine, run.storage_count, fraction),
        cheapest=given.cheapest(f"on demand at {fraction:.1%}", scaled),
    )


def _with_nic_fraction(machine: MachineType, fraction: float) -> MachineType:
    nic = round(machine.nic_bytes_per_s * fraction / calibration.NIC_FRACTION)
    return machine.model_copy(update={"nic_bytes_per_s": nic})


def _capacity(machine: MachineType, count: int, fraction: float) -> float:
    return round(count * min(machine.ssd_read_bytes_per_s, fraction * machine.nic_bytes_per_s))


def job_of(run: LargestRun, read_bytes_per_s: float) -> JobSpec:
    """Return the run as a job: its own compute machines given, fed from a mirrored storage fleet."""
    each = -(-round(read_bytes_per_s) // run.compute_count)
    return JobSpec(
        name="largest-public-run",
        data=(DataInput(source="s3://datasets/largest/"),),
        results=Results(to="s3://experiments/largest/"),
        command=("train",),
        compute=Compute(instance_type=run.compute_type, count=run.compute_count),
        demand=Demand(read_bytes_per_s=each),
        storage="fleet",
        resilience="mirror",
    )
