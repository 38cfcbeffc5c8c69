"""What a job reads and holds, from what it states, from a published workload, or from a printed assumption."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import NamedTuple

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text
from headrace.domain.catalog import MachineType, Workload
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import Checkpoints, Demand, JobSpec
from headrace.domain.plan import DemandPlan
from headrace.domain.requests import request_bytes


@dataclass(frozen=True)
class Need:
    """The demand on one kind of compute machine."""

    total: DemandPlan
    node_bytes_per_s: int
    """What one compute node reads."""
    assumed: bool
    """True when the job states no reads, so that nothing is refused for their sake."""
    assumptions: tuple[str, ...]
    transfer_usd: float = 0.0
    """What moving the inputs that lie in other regions costs, each time that they are moved."""


class _Reads(NamedTuple):
    """Bytes/s of one accelerator, or of one machine when the job names a type."""

    bytes_per_s: float
    basis: str
    assumption: str | None = None
    assumed: bool = False


def need_of(
    job: JobSpec, dataset: DatasetSummary, machine: MachineType, machines: int, workloads: tuple[Workload, ...]
) -> Need:
    """Return what the job needs when it trains on that many of these machines.

    Raises InfeasibleJob for a workload that nobody has published.
    """
    by_accelerator = job.compute.accelerator is not None
    units_each = machine.accelerators if by_accelerator else 1
    units = job.compute.count if by_accelerator else machines
    reads = _reads(job, machine, workloads)
    node_units = min(units_each, units)
    each_bytes = request_bytes(job, dataset)
    checkpoints = job.demand.checkpoints
    total = DemandPlan(
        read_bytes_per_s=math.ceil(reads.bytes_per_s * units),
        read_request_bytes=each_bytes,
        reads_per_s=math.ceil(reads.bytes_per_s * units / each_bytes),
        capacity_bytes=capacity_bytes(dataset.bytes, dataset.files, 1) * (2 if job.resilience == "mirror" else 1),
        dataset_bytes=dataset.bytes,
        dataset_files=dataset.files,
        checkpoint_bytes=checkpoint_bytes(checkpoints) if checkpoints else 0,
        checkpoint_period_s=checkpoints.period_s if checkpoints else 0,
        basis=f"{units} x {reads.basis}" if units > 1 else reads.basis,
    )
    return Need(
        total=total,
        node_bytes_per_s=math.ceil(reads.bytes_per_s * node_units),
        assumed=reads.assumed,
        assumptions=(reads.assumption,) if reads.assumption else (),
    )


def capacity_bytes(data_bytes: int, files: int, volumes: int) -> int:
    """Return the bytes of SSD that files need on so many XFS volumes, with headroom (see `calibration`)."""
    kept = math.ceil(stored_bytes(data_bytes, files) * calibration.CAPACITY_MARGIN)
    return kept + volumes * calibration.VOLUME_OVERHEAD_BYTES


def stored_bytes(data_bytes: int, files: int) -> int:
    """Return the bytes that files occupy with their last blocks and inodes."""
    return data_bytes + files * calibration.FILE_OVERHEAD_BYTES


def checkpoint_bytes(checkpoints: Checkpoints) -> int:
    """Return the bytes of one checkpoint, from its parameters where the job gives those."""
    return checkpoints.bytes or (checkpoints.parameters or 0) * calibration.CHECKPOINT_BYTES_PER_PARAMETER


def per_accelerator(job: JobSpec, machine: MachineType) -> Demand:
    """Return the demand of a job that names this type, divided by the accelerators of one machine."""
    demand, each = job.demand, machine.accelerators
    shared: dict[str, float] = {}
    if demand.read_bytes_per_s is not None:
        shared["read_bytes_per_s"] = math.ceil(demand.read_bytes_per_s / each)
    if demand.samples_per_s is not None:
        shared["samples_per_s"] = demand.samples_per_s / each
    return demand.model_copy(update=shared)


def _reads(job: JobSpec, machine: MachineType, workloads: tuple[Workload, ...]) -> _Reads:
    demand, unit = job.demand, "accelerator" if job.compute.accelerator else "machine"
    if demand.workload is not None:
        return _published(demand.workload, job, machine, workloads)
    if demand.read_bytes_per_s is not None:
        return _Reads(demand.read_bytes_per_s, f"{rate_text(demand.read_bytes_per_s)} per {unit}, as the job states")
    if demand.samples_per_s is not None and demand.sample_bytes is not None:
        rate = demand.samples_per_s * demand.sample_bytes
        sample = f"{demand.samples_per_s:g} samples/s of {bytes_text(demand.sample_bytes)}"
        return _Reads(rate, f"{rate_text(rate)} per {unit}: {sample}, as the job states")
    return _assumed(job, machine)


def _published(name: str, job: JobSpec, machine: MachineType, workloads: tuple[Workload, ...]) -> _Reads:
    rows = {row.accelerator: row for row in workloads if row.workload == name}
    if not rows:
        raise InfeasibleJob(_unknown_workload(name, workloads))
    row = rows.get(machine.accelerator or "") or rows.get(calibration.WORKLOAD_STAND_IN) or next(iter(rows.values()))
    each = row.sample_bytes * row.samples_per_s_at_full_use * row.least_use * calibration.WORKLOAD_MARGIN
    emulated = max(1, machine.accelerators) if job.compute.accelerator is None else 1
    basis = (
        f"{rate_text(each * emulated)}: {name} on {row.accelerator}, {bytes_text(row.sample_bytes)} samples at "
        f"{row.samples_per_s_at_full_use:g}/s, {row.least_use:.0%} busy, 3% margin (MLPerf Storage)"
    )
    stands_in = machine.accelerator != row.accelerator
    where = machine.accelerator or f"{machine.name}, which has no accelerator"
    note = (
        f"nobody published {name} on {where}: the reads of one {row.accelerator} stand in; state demand to replace them"
    )
    return _Reads(each * emulated, basis, note if stands_in else None)


def _unknown_workload(name: str, workloads: tuple[Workload, ...]) -> str:
    known = sorted({row.workload for row in workloads})
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    return f"demand.workload {name!r} is not published; {hint} Or state demand.read_bytes_per_s."


def _assumed(job: JobSpec, machine: MachineType) -> _Reads:
    """Return the reads assumed of a job that states none: never more than the machine's NIC brings in."""
    by_accelerator = job.compute.accelerator is not None
    sharers = machine.accelerators if by_accelerator else 1
    accelerators = 1 if by_accelerator else max(1, machine.accelerators)
    bound = math.floor(calibration.NIC_FRACTION * machine.nic_bytes_per_s / max(1, sharers))
    rate = min(calibration.DEFAULT_READ_BYTES_PER_S * accelerators, bound)
    unit = "accelerator" if by_accelerator else "machine"
    capped = ", as much as its NIC brings in" if rate == bound else ""
    note = (
        f"the job states no demand: {rate_text(rate)} per {unit} is assumed{capped} "
        "(ResNet-50 on an A100 reads 283 MB/s; NVIDIA DeepLearningExamples)"
    )
    return _Reads(rate, f"{rate_text(rate)} per {unit}, assumed", note, assumed=True)
