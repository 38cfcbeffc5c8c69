"""How long each phase of a candidate takes, what bills meanwhile, and what the run costs if all goes well or slowly."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, duration_text, rate_text
from headrace.domain.candidates import Candidate
from headrace.domain.catalog import MachineType
from headrace.domain.fleets import nic_share
from headrace.domain.plan import PhasePlan

_SECONDS_PER_HOUR = 3600


class Span(NamedTuple):
    """One phase in numbers: seconds as planned and in the slow case, and USD per hour meanwhile."""

    name: str
    eta_s: float
    slow_s: float
    usd_per_hour: float


class Staging(NamedTuple):
    """What bounds the copy from S3."""

    seconds: float
    node_bytes: int
    node_bytes_per_s: float
    gets_per_s: float
    bound: str


def spans(candidate: Candidate) -> tuple[Span, ...]:
    """Return the phases in order."""
    storage, compute = candidate.storage_usd_per_hour, candidate.compute_usd_per_hour
    launch = (calibration.LAUNCH_S, calibration.LAUNCH_SLOW_S)
    training_s = candidate.job.duration_hours * _SECONDS_PER_HOUR
    copied_s = staging(candidate).seconds if candidate.kind != "direct" else 0.0
    copying = (copied_s, copied_s * calibration.STAGING_SLOWDOWN)
    rows = (
        Span("storage", *launch, storage) if candidate.kind == "fleet" else None,
        Span("staging", *copying, storage) if candidate.kind == "fleet" else None,
        Span("compute", *launch, storage + compute),
        Span("staging", *copying, compute) if candidate.kind == "local" else None,
        Span("training", training_s, training_s * calibration.TRAINING_SLOWDOWN, storage + compute),
        Span("ending", calibration.ENDING_S, calibration.ENDING_SLOW_S, storage + compute),
    )
    return tuple(row for row in rows if row)


def usd_low(candidate: Candidate) -> float:
    """Return what the run costs when every phase takes its planned time, in USD."""
    return usd_of(candidate, spans(candidate))


def usd_of(candidate: Candidate, phases: tuple[Span, ...]) -> float:
    """Return what the candidate's phases cost in their planned time, and its transfers, in USD."""
    machines = sum(span.eta_s * span.usd_per_hour for span in phases) / _SECONDS_PER_HOUR
    return round(machines + crossings(candidate) * candidate.need.transfer_usd, 6)


def usd_high(candidate: Candidate) -> float:
    """Return what the run costs in the slow case, with spot machines at their list price, in USD."""
    slow = spans(candidate.priced_on_demand())
    machines = sum(span.slow_s * span.usd_per_hour for span in slow) / _SECONDS_PER_HOUR
    return round(machines + crossings(candidate) * candidate.need.transfer_usd, 6)


def crossings(candidate: Candidate) -> float:
    """Return how often data in other regions are moved: once per copy, or once per epoch when S3 is read itself."""
    if candidate.kind == "fleet":
        return float(candidate.copies)
    if candidate.kind == "local":
        return float(candidate.compute.count)
    read = candidate.need.total.read_bytes_per_s * candidate.job.duration_hours * _SECONDS_PER_HOUR
    return read / candidate.dataset.bytes if candidate.dataset.bytes else 0.0


def staging(candidate: Candidate) -> Staging:
    """Return how long the copy takes: the slowest of each node's NIC and SSDs, and of requests per second.

    Each storage node copies its share (twice with a mirror); on local storage each compute node copies all of it.
    """
    dataset = candidate.dataset
    machine, nodes = _copier(candidate)
    each = candidate.volumes or 1
    node_bytes = candidate.copies * math.ceil(dataset.bytes / each)
    nic = cross_region_rate(machine) if candidate.job.is_from_afar else nic_share(machine)
    rate = min(nic, machine.ssd_write_bytes_per_s or nic)
    gets = min(calibration.S3_GETS_PER_S, nodes * machine.vcpus * calibration.GETS_PER_S_PER_VCPU)
    requests = copy_requests(candidate)
    by_bytes, by_requests = node_bytes / rate, requests / gets
    bound = "requests to S3" if by_requests > by_bytes else ("NIC" if rate == nic else "SSD writes")
    return Staging(max(by_bytes, by_requests), node_bytes, rate, gets, bound)


def copy_requests(candidate: Candidate) -> int:
    """Return the GETs of the copy: one for each object, or for each range of large ones."""
    dataset, times = candidate.dataset, candidate.compute.count if candidate.kind == "local" else candidate.copies
    if dataset.largest_bytes <= calibration.RANGED_ABOVE_BYTES:
        return times * dataset.files
    return times * max(dataset.files, math.ceil(dataset.bytes / calibration.RANGE_BYTES))


def _copier(candidate: Candidate) -> tuple[MachineType, int]:
    if candidate.storage is not None:
        return candidate.storage.machine, candidate.storage_nodes
    return candidate.compute.machine, candidate.compute.count


def cross_region_rate(machine: MachineType) -> float:
    """Return bytes/s that a machine gets from another region."""
    if machine.vcpus >= calibration.CROSS_REGION_VCPUS:
        return machine.nic_bytes_per_s / 2
    return min(nic_share(machine), calibration.CROSS_REGION_SMALL_BYTES_PER_S)


def phase_plans(candidate: Candidate) -> tuple[PhasePlan, ...]:
    """Return the phases with a reason for each duration."""
    return tuple(
        PhasePlan.model_validate(
            {
                "name": span.name,
                "eta_s": round(span.eta_s, 1),
                "usd_per_hour": round(span.usd_per_hour, 6),
                "because": _because(span.name, candidate),
            }
        )
        for span in spans(candidate)
    )


def _because(phase: str, candidate: Candidate) -> str:
    if phase == "staging":
        return _staging_because(candidate)
    launch = "launch, registration with Systems Manager and configuration"
    return {
        "storage": f"{launch}; only storage bills",
        "compute": f"{launch}; compute begins to bill",
        "training": f"duration_hours is {candidate.job.duration_hours:g}",
        "ending": "from the job-done event to the last machine shutting down; compute goes first",
    }[phase]


def _staging_because(candidate: Candidate) -> str:
    copy = staging(candidate)
    bills = "only storage bills" if candidate.kind == "fleet" else "the compute nodes bill meanwhile"
    if copy.bound == "requests to S3":
        return f"{_requests_text(candidate)} at {copy.gets_per_s:,.0f} GET/s; {bills}"
    each = f"{bytes_text(copy.node_bytes)} per node at {rate_text(copy.node_bytes_per_s)}"
    return f"{each}, bound by its {copy.bound}: {duration_text(copy.seconds)}; {bills}"


def _requests_text(candidate: Candidate) -> str:
    objects, requests = f"{candidate.dataset.files:,} objects", copy_requests(candidate)
    if requests <= candidate.dataset.files:
        return objects
    return f"{requests:,} GETs of {objects}, large ones in ranges of {calibration.RANGE_BYTES // 2**20} MiB,"
