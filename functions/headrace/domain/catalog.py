"""The machine catalog and price list that plans are made from, and the packaged text they are read from."""

from __future__ import annotations

import difflib
import json
from typing import Any, Literal, NamedTuple

from headrace.domain.model import Bytes, Contract, Usd

MIB = 2**20
GB = 10**9
GBPS = 10**9 // 8
MBPS = 10**6 // 8


class MachineType(Contract):
    """One EC2 instance type, reduced to what a plan uses. Rates are sustained, not burst."""

    name: str
    arch: Literal["x86_64", "arm64"]
    vcpus: int
    memory_bytes: Bytes
    nic_bytes_per_s: Bytes
    """IP line rate; EFA bandwidth is never counted (aws-facts.md section 8)."""
    disk_count: int
    disk_bytes: Bytes
    """Bytes of one local NVMe SSD; 0 when there is none."""
    ssd_read_bytes_per_s: Bytes
    """Whole machine; 0 when not measured anywhere."""
    ssd_write_bytes_per_s: Bytes
    ssd_read_iops: int = 0
    """Random 4 KiB reads per second of the whole machine; 0 when not measured anywhere, and then no bound."""
    accelerator: str | None
    accelerators: int
    ena_express: bool
    spot: bool
    ebs_bytes_per_s: Bytes = 0
    """Sustained rate of its link to EBS; 0 when not known."""
    ebs_iops: int = 0
    nic_basis: Literal["baseline", "one_card", "override", "given"] = "baseline"
    """`one_card`: one interface of a machine with several cards; `override`: an assumption that a plan prints; `given`:
    the person's own figure."""
    disk_kind: Literal["none", "ssd", "hdd"] = "ssd"
    ssd_basis: Literal["none", "measured", "extrapolated", "iops_floor"] = "measured"
    """`iops_floor`: only random 4 KiB operations were measured, and their bytes stand in, which is less."""
    accelerator_memory_bytes: Bytes = 0
    current: bool = True
    """False for a former generation: used only when a job names it."""
    bare_metal: bool = False

    @property
    def ssd_bytes(self) -> int:
        """Bytes of all local NVMe SSDs together."""
        return self.disk_count * self.disk_bytes

    def read_bytes_per_s(self, request_bytes: int) -> int:
        """Return what its SSDs give in reads of that many useful bytes."""
        by_operations = self.ssd_read_iops * request_bytes
        return min(self.ssd_read_bytes_per_s, by_operations) if by_operations else self.ssd_read_bytes_per_s

    def carries(self, accelerator: str) -> bool:
        """Tell whether it has whole accelerators of that kind; `a100-80gb` narrows `a100` by memory."""
        if not self.accelerators or self.accelerator is None:
            return False
        memory_gb = {self.accelerator_memory_bytes >> 30, round(self.accelerator_memory_bytes / GB)}
        return accelerator in {self.accelerator, *(f"{self.accelerator}-{size}gb" for size in memory_gb)}


class Workload(Contract):
    """What one accelerator reads in a published benchmark (MLPerf Storage; training-io.md section 8)."""

    workload: str
    accelerator: str
    sample_bytes: float
    samples_per_s_at_full_use: float
    least_use: float
    """Share of time that the accelerator must be busy for the result to count."""


class Catalog(Contract):
    """Machine types offered in one region, and what the published workloads read."""

    region: str
    dated: str
    types: tuple[MachineType, ...]
    workloads: tuple[Workload, ...] = ()
    regions: tuple[str, ...] = ()
    """Every region that is known."""
    offered: dict[str, int] = {}
    """Where each type is offered: a bit for each of the regions, in their order."""
    accelerators_offered: dict[str, int] = {}
    """The same for each kind of accelerator."""

    def regions_with(self, offered: int) -> tuple[str, ...]:
        """Return the regions of such bits."""
        return tuple(name for place, name in enumerate(self.regions) if offered >> place & 1)

    def find(self, name: str) -> MachineType | None:
        """Return the type of that name, or None when the region does not offer it."""
        return next((one for one in self.types if one.name == name), None)

    def close_types(self, name: str) -> tuple[str, ...]:
        """Return up to three names like that one."""
        return tuple(difflib.get_close_matches(name, [one.name for one in self.types], n=3, cutoff=0.6))

    @property
    def accelerator_kinds(self) -> tuple[str, ...]:
        """Names of the accelerators that some type has whole ones of, in order."""
        return tuple(sorted({one.accelerator for one in self.types if one.accelerator and one.accelerators}))


class ServicePrice(Contract):
    """List price of one dimension of a storage service."""

    name: str
    unit: str
    usd: float
    status: Literal["two_sources", "one_source", "recalled_unverified"]


class PriceList(Contract):
    """List prices of one region in USD per hour, with the date they were read."""

    region: str
    dated: str
    on_demand: dict[str, Usd]
    spot_savings_percent: dict[str, int]
    spot_dated: str = ""
    """Date of the savings, which are older than the prices."""
    spot_reclaimed_percent: dict[str, int] = {}
    """Share of machines that the spot market took back within a month, upper end of the published band."""
    given: tuple[str, ...] = ()
    """Types whose price is the person's own."""
    capacity_blocks: dict[str, Usd] = {}
    """What blocks that are paid in advance come to by the hour; nobody publishes it, so only a person knows."""
    services: tuple[ServicePrice, ...] = ()
    """Prices of storage services in this region; empty where none is known."""
    transfer_out_usd_per_gb: dict[str, float] = {}
    """What a gigabyte costs out of each region into another."""
    transfer_pairs_usd_per_gb: dict[str, float] = {}
    """Pairs of regions, `from to`, between which another price holds either way."""

    def transfer_usd_per_gb(self, source: str, target: str) -> float | None:
        """Return what a gigabyte costs from one region to another, or None when nobody published it."""
        if source == target:
            return 0.0
        pairs = (f"{source} {target}", f"{target} {source}")
        special = next(
            (self.transfer_pairs_usd_per_gb[one] for one in pairs if one in self.transfer_pairs_usd_per_gb), None
        )
        return special if special is not None else self.transfer_out_usd_per_gb.get(source)


class Market(NamedTuple):
    """The machines of one region and what they cost."""

    catalog: Catalog
    prices: PriceList


def parse_catalog(text: str, region: str) -> Catalog:
    """Return the types that the region offers, from the packaged `catalog.json`; none for an unknown region."""
    packed = json.loads(text)
    bit = 1 << packed["regions"].index(region) if region in packed["regions"] else 0
    rows = (dict(zip(packed["columns"], row, strict=True)) for row in packed["types"] if row[-1] & bit)
    name, accelerator, count = (packed["columns"].index(one) for one in ("name", "accelerator", "accelerators"))
    by_accelerator: dict[str, int] = {}
    for row in packed["types"]:
        if row[accelerator] and row[count]:
            by_accelerator[row[accelerator]] = by_accelerator.get(row[accelerator], 0) | row[-1]
    return Catalog(
        region=region,
        dated=packed["dated"],
        types=tuple(_machine_type(row) for row in rows),
        workloads=tuple(Workload(**row) for row in packed["workloads"]),
        regions=tuple(packed["regions"]),
        offered={row[name]: row[-1] for row in packed["types"]},
        accelerators_offered=by_accelerator,
    )


def _machine_type(row: dict[str, Any]) -> MachineType:
    solid = row["disk_kind"] == "ssd"
    return MachineType(
        name=row["name"],
        arch=row["arch"],
        vcpus=row["vcpus"],
        memory_bytes=row["memory_mib"] * MIB,
        nic_bytes_per_s=round(row["nic_gbps"] * GBPS),
        nic_basis=row["nic_basis"],
        disk_kind=row["disk_kind"],
        disk_count=row["disk_count"] if solid else 0,
        disk_bytes=row["disk_gb"] * GB if solid else 0,
        ssd_read_bytes_per_s=row["ssd_read_bytes_per_s"],
        ssd_write_bytes_per_s=row["ssd_write_bytes_per_s"],
        ssd_basis=row["ssd_basis"],
        ssd_read_iops=row["ssd_read_iops"],
        accelerator=row["accelerator"],
        accelerators=row["accelerators"],
        accelerator_memory_bytes=row["accelerator_mib"] * MIB,
        ena_express=bool(row["ena_express"]),
        spot=bool(row["spot"]),
        ebs_bytes_per_s=row["ebs_mbps"] * MBPS,
        ebs_iops=row["ebs_iops"],
        current=bool(row["current"]),
        bare_metal=bool(row["bare_metal"]),
    )


def parse_prices(text: str, region: str) -> PriceList:
    """Return the region's prices from the packaged `prices.json`.

    Outside us-east-1 a type is priced only where its family's ratio to us-east-1 is known; the rest is left out.
    """
    packed = json.loads(text)
    base: dict[str, float] = packed["us_east_1_usd_per_hour"]
    if region != "us-east-1":
        ratios: dict[str, float] = packed["family_multipliers"].get(region, {})
        base = {name: round(usd * ratios[family(name)], 6) for name, usd in base.items() if family(name) in ratios}
    return PriceList(
        region=region,
        dated=packed["dated"],
        on_demand=base,
        spot_savings_percent=packed["spot_savings_percent"].get(region, {}),
        spot_dated=packed["spot_dated"],
        spot_reclaimed_percent=packed["spot_reclaimed_percent"].get(region, {}),
        services=tuple(packed["services"]) if region == packed["services_region"] else (),
        transfer_out_usd_per_gb=packed["transfer_out_usd_per_gb"],
        transfer_pairs_usd_per_gb=packed["transfer_pairs_usd_per_gb"],
    )


def family(name: str) -> str:
    """Return the part of a type's name before the dot."""
    return name.partition(".")[0]
