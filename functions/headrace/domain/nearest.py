"""The nearest jobs that could run where the one asked for cannot: found by trying, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text
from headrace.domain.candidates import Candidate
from headrace.domain.catalog import GB, Catalog, MachineType
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import per_accelerator
from headrace.domain.job import Demand, JobSpec

INTERFACES_TRIED = 4
"""Interfaces tried for a machine of which one is counted; p4d and p5 have at least so many (data/README.md)."""


class Trial(Protocol):
    """A search that can be done again for another job."""

    job: JobSpec
    dataset: DatasetSummary
    catalog: Catalog

    def varied(
        self, dataset: DatasetSummary | None = None, catalog: Catalog | None = None, **changes: Any
    ) -> list[Candidate]:
        """Return what would be feasible with these changes."""
        ...


def nearest(trial: Trial) -> list[str]:
    """Return fields of the job, each of which alone would make it feasible, and how large data could be."""
    return [
        *_without_a_wish(trial),
        *_by_accelerator(trial),
        *_smaller_count(trial),
        *_more_interfaces(trial),
        *_smaller_reads(trial),
        *_smaller_data(trial),
    ]


def _without_a_wish(trial: Trial) -> Iterator[str]:
    job = trial.job
    if job.storage != "auto" and trial.varied(storage="auto"):
        yield "storage: auto"
    if job.storage_nodes and trial.varied(storage_nodes=None):
        yield "another number of storage_nodes, or none"
    if job.resilience != "none" and trial.varied(resilience="none"):
        yield "resilience: none"
    if job.demand.checkpoints and trial.varied(demand=_demand(job, checkpoints=None)):
        yield "smaller or rarer checkpoints"
    if job.demand.read_latency_ms is not None:
        latencies_ms = sorted(1000 * seconds for seconds in calibration.READ_LATENCY_S.values())
        able = (ms for ms in latencies_ms if trial.varied(demand=_demand(job, read_latency_ms=ms)))
        yield from (f"demand.read_latency_ms: {ms:g}" for ms in list(able)[:1])


def _by_accelerator(trial: Trial) -> Iterator[str]:
    """Yield the job's accelerators without its type, when other machines that carry them could run it."""
    named = trial.catalog.find(trial.job.compute.instance_type or "")
    if named is None or named.accelerator is None or not named.accelerators:
        return
    count = named.accelerators * trial.job.compute.count
    changes = {"instance_type": None, "accelerator": named.accelerator, "count": count}
    compute = trial.job.compute.model_copy(update=changes)
    found = trial.varied(compute=compute, demand=per_accelerator(trial.job, named))
    if found:
        best = min(found, key=lambda one: one.compute_usd_per_hour + one.storage_usd_per_hour).compute
        yield f"accelerator: {named.accelerator} with count: {count}, as {best.count} x {best.machine.name} can be fed"


def _smaller_count(trial: Trial) -> Iterator[str]:
    compute = trial.job.compute

    def works(count: int) -> bool:
        return bool(trial.varied(compute=compute.model_copy(update={"count": count})))

    most = largest(works, compute.count)
    if most:
        yield f"compute.count: {most}"


def _more_interfaces(trial: Trial) -> Iterator[str]:
    """Yield the machine that several interfaces would feed, where one of several is counted."""
    found = trial.varied(catalog=with_interfaces(trial.catalog, INTERFACES_TRIED))
    if found:
        machine = min(found, key=lambda one: one.compute_usd_per_hour + one.storage_usd_per_hour).compute.machine
        words = f"nic_gbps: {{{machine.name}: {machine.nic_bytes_per_s * 8 / GB:g}}} in the price overrides"
        yield f"{words}, if its connections are spread over {INTERFACES_TRIED} interfaces"


def with_interfaces(catalog: Catalog, interfaces: int) -> Catalog:
    """Return the catalog with so many interfaces of each machine with accelerators of which one is counted."""

    def wider(machine: MachineType) -> MachineType:
        if not machine.accelerators or machine.nic_basis not in ("one_card", "override"):
            return machine
        return machine.model_copy(update={"nic_bytes_per_s": interfaces * machine.nic_bytes_per_s})

    return catalog.model_copy(update={"types": tuple(map(wider, catalog.types))})


def _smaller_reads(trial: Trial) -> Iterator[str]:
    """Yield the largest reads for each accelerator, or machine, in steps of a thousandth of what is asked."""
    demand = trial.job.demand
    asked = demand.read_bytes_per_s or round((demand.samples_per_s or 0) * (demand.sample_bytes or 0))
    if demand.workload is not None:
        row = next((one for one in trial.catalog.workloads if one.workload == demand.workload), None)
        asked = round(row.sample_bytes * row.samples_per_s_at_full_use) if row else 0
    step = max(1, asked // 1000)

    def works(steps: int) -> bool:
        return bool(trial.varied(demand=_reading(demand, steps * step)))

    most = largest(works, asked // step) if asked else 0
    if most:
        yield f"demand.read_bytes_per_s: {most * step}"


def _smaller_data(trial: Trial) -> Iterator[str]:
    """Yield how much of such files could be held, in steps of a thousandth of the data set."""
    dataset = trial.dataset

    def works(thousandths: int) -> bool:
        fewer = {
            "bytes": max(1, dataset.bytes * thousandths // 1000),
            "files": max(1, dataset.files * thousandths // 1000),
            "largest_bytes": max(1, min(dataset.largest_bytes, dataset.bytes * thousandths // 1000)),
            "input_bytes": (),
        }
        return bool(trial.varied(dataset.model_copy(update=fewer)))

    most = largest(works, 1000)
    if most:
        yield f"a data set of {bytes_text(dataset.bytes * most / 1000)} of such files"


def largest(works: Callable[[int], bool], fails: int) -> int:
    """Return the largest number below `fails` that works, by halving; 0 when none does."""
    fits = 0
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if works(middle):
            fits = middle
        else:
            fails = middle
    return fits


def _demand(job: JobSpec, **changes: Any) -> Demand:
    return job.demand.model_copy(update=changes)


def _reading(demand: Demand, read_bytes_per_s: int) -> Demand:
    stated = {"workload": None, "samples_per_s": None, "sample_bytes": None, "read_bytes_per_s": read_bytes_per_s}
    kept = demand.request_bytes or demand.sample_bytes
    return demand.model_copy(update={**stated, "request_bytes": kept})
