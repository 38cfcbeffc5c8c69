"""The machine catalog and price list that plans are made from."""

from __future__ import annotations

from typing import Literal

from headrace.domain.model import Bytes, Contract, Usd


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
    accelerator: str | None
    accelerators: int
    ena_express: bool
    spot: bool


class Catalog(Contract):
    """Machine types offered in one region."""

    region: str
    dated: str
    types: tuple[MachineType, ...]

    def find(self, name: str) -> MachineType | None:
        """Return the type of that name, or None when the region does not offer it."""
        return next((one for one in self.types if one.name == name), None)


class PriceList(Contract):
    """List prices of one region in USD per hour, with the date they were read."""

    region: str
    dated: str
    on_demand: dict[str, Usd]
    spot_savings_percent: dict[str, int]
