"""The single reads that a loader issues: how large they are, how many a second, and how long one may take."""

from __future__ import annotations

from headrace.domain import calibration
from headrace.domain.dataset import DatasetSummary
from headrace.domain.job import Demand, JobSpec
from headrace.domain.plan import StorageKind


def request_bytes(job: JobSpec, dataset: DatasetSummary) -> int:
    """Return the useful bytes of one read: the kernel's read-ahead, or less where files or samples are smaller.

    A job that states no reads is taken at the read-ahead, since its assumed rate is in bytes.
    """
    demand = job.demand
    if demand.request_bytes is not None:
        return demand.request_bytes
    if not states_reads(demand):
        return calibration.READ_AHEAD_BYTES
    file_bytes = dataset.bytes // dataset.files if dataset.files else calibration.READ_AHEAD_BYTES
    sample_bytes = demand.sample_bytes or file_bytes
    return max(1, min(calibration.READ_AHEAD_BYTES, file_bytes, sample_bytes))


def states_reads(demand: Demand) -> bool:
    """Tell whether the job says what it reads."""
    return any(one is not None for one in (demand.workload, demand.read_bytes_per_s, demand.samples_per_s))


def latency_fault(job: JobSpec, kind: StorageKind) -> str:
    """Return why a read of this kind of storage takes longer than the job allows, or nothing."""
    bound_ms, taken_ms = job.demand.read_latency_ms, 1000 * calibration.READ_LATENCY_S[kind]
    if bound_ms is None or taken_ms <= bound_ms:
        return ""
    return f"one read takes {taken_ms:g} ms, longer than demand.read_latency_ms {bound_ms:g}"
