"""The plan for each number of accelerators that the published results were given for."""

from __future__ import annotations

from headrace.domain.benchmarks import BenchmarkRow, Benchmarks
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import Compute, DataInput, Demand, JobSpec, Results
from headrace.domain.model import Contract
from headrace.domain.nearest import INTERFACES_TRIED, with_interfaces
from headrace.domain.plan import BindingLimit, Plan
from headrace.domain.planner import plan

Key = tuple[str, str, int]


class PlannedCount(Contract):
    """What headrace would launch for so many accelerators of a kind under one workload."""

    workload: str
    accelerator: str
    accelerators: int
    machines: tuple[str, ...] = ()
    """Each fleet as `count x type`."""
    storage: str = ""
    usd_per_accelerator_hour: float | None = None
    limit: BindingLimit | None = None
    interfaces: int = 1
    """Network interfaces of each machine that trains; more than one is a figure for comparison, not a plan."""
    refused: str = ""
    """Why there is no plan with one interface."""


def planned_counts(benchmarks: Benchmarks, catalog: Catalog, prices: PriceList) -> tuple[PlannedCount, ...]:
    """Return a plan for each workload, accelerator and count of the table, with the largest data set it was run on."""
    largest: dict[Key, BenchmarkRow] = {}
    for row in sorted(benchmarks.rows, key=lambda one: one.files):
        largest[row.workload, row.accelerator, row.accelerators] = row
    return tuple(_planned(largest[key], catalog, prices) for key in sorted(largest))


def _planned(row: BenchmarkRow, catalog: Catalog, prices: PriceList) -> PlannedCount:
    sample_bytes = next(one.sample_bytes for one in catalog.workloads if one.workload == row.workload)
    file_bytes = round(row.samples_per_file * sample_bytes)
    dataset = DatasetSummary(files=row.files, bytes=row.files * file_bytes, largest_bytes=file_bytes, parts=())
    asked: dict[str, object] = {
        "workload": row.workload,
        "accelerator": row.accelerator,
        "accelerators": row.accelerators,
    }
    try:
        return PlannedCount.model_validate({**asked, **_found(plan(_job(row), dataset, catalog, prices), row)})
    except InfeasibleJob as refusal:
        asked["refused"] = str(refusal)
    try:
        wider = plan(_job(row), dataset, with_interfaces(catalog, INTERFACES_TRIED), prices)
    except InfeasibleJob:
        return PlannedCount.model_validate(asked)
    return PlannedCount.model_validate({**asked, **_found(wider, row), "interfaces": INTERFACES_TRIED})


def _found(made: Plan, row: BenchmarkRow) -> dict[str, object]:
    chosen = made.chosen
    return {
        "machines": tuple(f"{fleet.count} x {fleet.instance_type}" for fleet in chosen.fleets),
        "storage": chosen.storage,
        "usd_per_accelerator_hour": round(chosen.usd_per_hour / row.accelerators, 4),
        "limit": chosen.limit,
    }


def _job(row: BenchmarkRow) -> JobSpec:
    return JobSpec(
        name="replay",
        data=(DataInput(source="s3://datasets/replay/"),),
        results=Results(to="s3://experiments/replay/"),
        command=("train",),
        compute=Compute(accelerator=row.accelerator, count=row.accelerators),
        demand=Demand(workload=row.workload),
    )
