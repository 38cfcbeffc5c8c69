"""Small catalogs and jobs for tests of the planner, with a builder for each."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Catalog, MachineType, PriceList, Workload
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.planner import plan

GB = 10**9
TB = 10**12

UNET3D = Workload(
    workload="unet3d", accelerator="h100", sample_bytes=100e6, samples_per_s_at_full_use=20.0, least_use=0.9
)


def machine(name: str, **facts: Any) -> MachineType:
    """Return a machine with 10 GB/s of network and two SSDs of 1 TB that read 8 GB/s together."""
    shape: dict[str, Any] = {
        "arch": "x86_64",
        "vcpus": 16,
        "memory_bytes": 64 * GB,
        "nic_bytes_per_s": 10 * GB,
        "disk_count": 2,
        "disk_bytes": TB,
        "ssd_read_bytes_per_s": 8 * GB,
        "ssd_write_bytes_per_s": 4 * GB,
        "accelerator": None,
        "accelerators": 0,
        "ena_express": False,
        "spot": True,
    }
    return MachineType(name=name, **{**shape, **facts})


def diskless(name: str, **facts: Any) -> MachineType:
    """Return a machine without local disks."""
    bare = {"disk_count": 0, "disk_bytes": 0, "ssd_read_bytes_per_s": 0, "ssd_write_bytes_per_s": 0}
    return machine(name, **{**bare, "disk_kind": "none", "ssd_basis": "none", **facts})


def world(priced: dict[MachineType, float], savings: dict[str, int] | None = None) -> tuple[Catalog, PriceList]:
    """Return a catalog of the machines and their prices in USD per hour."""
    catalog = Catalog(region="us-east-1", dated="2026-01-01", types=tuple(priced), workloads=(UNET3D,))
    on_demand = {one.name: usd for one, usd in priced.items()}
    prices = PriceList(
        region="us-east-1",
        dated="2026-01-02",
        on_demand=on_demand,
        spot_savings_percent=savings or {},
        spot_dated="2025-06-28",
    )
    return catalog, prices


def job(**changes: Any) -> JobSpec:
    """Return a job for one `cpu.large`, with some fields changed."""
    given: dict[str, Any] = {
        "name": "small",
        "data": {"source": "s3://datasets/small/"},
        "results": "s3://experiments/small/",
        "command": ["python", "train.py"],
        "compute": {"instance_type": "cpu.large"},
        **changes,
    }
    return JobSpec.model_validate(given)


def dataset(total_bytes: int = 100 * GB, files: int = 1_000, largest_bytes: int | None = None) -> DatasetSummary:
    """Return a data set of equal files."""
    largest = largest_bytes if largest_bytes is not None else -(-total_bytes // max(1, files))
    return DatasetSummary(files=files, bytes=total_bytes, largest_bytes=largest, parts=())


CPU = diskless("cpu.large")
CHEAP, FAST = machine("disk.cheap", nic_bytes_per_s=5 * GB), machine("disk.fast")
SMALL = world({CPU: 1.0, CHEAP: 0.9, FAST: 2.0})
GPU8, GPU1 = (
    machine("gpu.8x", accelerator="h100", accelerators=8),
    machine("gpu.1x", accelerator="h100", accelerators=1),
)


def refusal(spec: JobSpec, small: tuple[Catalog, PriceList] = SMALL, **data: Any) -> str:
    """Return the words with which the plan is refused."""
    with pytest.raises(InfeasibleJob, match=r".*") as found:
        plan(spec, dataset(**data), *small)
    return str(found.value)
