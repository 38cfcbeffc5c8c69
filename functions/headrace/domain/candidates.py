"""The ways to run a job: each feasible pairing of a compute fleet with storage, and its phases and price."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import Need, capacity_bytes
from headrace.domain.fleets import ComputeFleet, StorageOffer, nic_share
from headrace.domain.job import JobSpec
from headrace.domain.plan import StorageKind
from headrace.domain.requests import latency_fault
from headrace.domain.sizing import Shape, fleet_sizes, shape_of

Reject = Callable[[str, str], None]
Fault = tuple[str, str]
"""A reason that many types may share, and the numbers of this one."""


@dataclass(frozen=True)
class Candidate:
    """One way to run the job."""

    job: JobSpec
    dataset: DatasetSummary
    need: Need
    compute: ComputeFleet
    kind: StorageKind
    storage: StorageOffer | None = None
    storage_nodes: int = 0
    least_nodes: int = 0
    """Nodes that would do if the job asked for no number of them."""
    shape: Shape = "spread"
    volumes: int = 0
    """File systems that the data set is divided over on a fleet."""

    @property
    def copies(self) -> int:
        """How many times the data set is held."""
        return 2 if self.kind == "fleet" and self.job.resilience == "mirror" else 1

    @property
    def storage_usd_per_hour(self) -> float:
        """Price of the storage fleet."""
        return self.storage_nodes * self.storage.usd_per_hour if self.storage else 0.0

    @property
    def compute_usd_per_hour(self) -> float:
        """Price of the compute fleet."""
        return self.compute.count * self.compute.usd_per_hour

    def with_nodes(self, nodes: int, volumes: int) -> Candidate:
        """Return the same with another number of storage nodes and volumes."""
        return replace(self, storage_nodes=nodes, volumes=volumes, shape=shape_of(self.dataset, nodes))

    def with_storage(self, offer: StorageOffer) -> Candidate:
        """Return the same with as many storage nodes of another type."""
        return replace(self, storage=offer)

    def with_compute(self, fleet: ComputeFleet) -> Candidate:
        """Return the same with another compute fleet."""
        return replace(self, compute=fleet)

    def priced_on_demand(self) -> Candidate:
        """Return the same with compute at its list price, which spot may rise to."""
        return self.with_compute(replace(self.compute, usd_per_hour=self.compute.on_demand_usd_per_hour))


def fleet_candidates(
    job: JobSpec,
    dataset: DatasetSummary,
    need: Need,
    compute: ComputeFleet,
    offers: tuple[StorageOffer, ...],
    reject: Reject,
) -> Iterator[Candidate]:
    """Yield, for each storage type, every size that serves and holds what is needed and could be the cheapest."""
    late = latency_fault(job, "fleet")
    if late:
        reject(f"fleet: {late}", compute.machine.name)
        return
    if need.node_bytes_per_s > nic_share(compute.machine):
        reason, numbers = _reads_less("NIC brings in", nic_share(compute.machine), need)
        reject(f"fleet: {reason}", f"{compute.machine.name}{numbers}")
        return
    for offer in offers:
        found = fleet_sizes(job, dataset, need, compute, offer)
        if isinstance(found, str):
            reject(f"storage: {found}", offer.machine.name)
            continue
        for size in found:
            yield Candidate(
                job=job,
                dataset=dataset,
                need=need,
                compute=compute,
                kind="fleet",
                storage=offer,
                storage_nodes=size.nodes,
                least_nodes=size.least,
                shape=shape_of(dataset, size.nodes),
                volumes=size.volumes,
            )


def local_candidate(
    job: JobSpec, dataset: DatasetSummary, need: Need, compute: ComputeFleet, reject: Reject
) -> Candidate | None:
    """Return the answer without a fleet, when each compute node's own SSDs hold all of the data set and read it."""
    fault = local_fault(job, dataset, need, compute)
    if fault is None:
        return Candidate(job, dataset, need, compute, "local")
    reject(f"local: {fault[0]}", f"{compute.machine.name}{fault[1]}")
    return None


def local_fault(job: JobSpec, dataset: DatasetSummary, need: Need, compute: ComputeFleet) -> Fault | None:
    """Return why the compute nodes' own SSDs do not do, or None when they do."""
    machine = compute.machine
    needed = capacity_bytes(dataset.bytes, dataset.files, 1) + 2 * checkpoint_share(need, compute)
    late = latency_fault(job, "local")
    if late:
        return late, ""
    if not machine.ssd_bytes:
        return "compute nodes have no local SSD", ""
    if needed > machine.ssd_bytes:
        return "a compute node's SSDs hold less than the data set", _of(bytes_text, machine.ssd_bytes, needed)
    if machine.ssd_read_bytes_per_s == 0:
        return None if job.storage == "local" else ("the rate of a compute node's SSDs is measured nowhere", "")
    insists = need.assumed and job.storage == "local"
    own_rate = machine.read_bytes_per_s(need.total.read_request_bytes)
    if need.node_bytes_per_s > own_rate and not insists:
        return _reads_less("SSDs read", own_rate, need)
    return None


def _reads_less(what: str, offered: float, need: Need) -> Fault:
    return f"a compute node's {what} less than it needs", _of(rate_text, offered, need.node_bytes_per_s)


def _of(text: Callable[[float], str], offered: float, needed: float) -> str:
    return f": {text(offered)} of {text(needed)}"


def direct_candidate(
    job: JobSpec, dataset: DatasetSummary, need: Need, compute: ComputeFleet, reject: Reject
) -> Candidate | None:
    """Return the answer that reads S3 itself, within S3's and the nodes' limits."""
    late = latency_fault(job, "direct")
    if foreign := next((one for one in job.data if one.is_given), None):
        reject("direct: the command has no keys for a bucket that is not ours; write storage: auto", foreign.source)
        return None
    fault = (late, "") if late else None if need.assumed else _no_direct_reads(dataset, need, compute)
    if fault is None:
        return Candidate(job, dataset, need, compute, "direct")
    reject(f"direct: {fault[0]}", f"{compute.machine.name}{fault[1]}")
    return None


def _no_direct_reads(dataset: DatasetSummary, need: Need, compute: ComputeFleet) -> Fault | None:
    machine = compute.machine
    if need.node_bytes_per_s > nic_share(machine):
        return _reads_less("NIC brings in", nic_share(machine), need)
    gets = gets_per_s(dataset, need)
    if gets > calibration.S3_GETS_PER_S:
        return "one S3 prefix gives fewer GET/s than are needed", f": {calibration.S3_GETS_PER_S:,} of {gets:,.0f}"
    node_gets = calibration.GETS_PER_S_PER_VCPU * machine.vcpus
    if gets / compute.count > node_gets:
        return "a compute node's vCPUs do fewer GET/s than it needs", f": {node_gets:,} of {gets / compute.count:,.0f}"
    return None


def gets_per_s(dataset: DatasetSummary, need: Need) -> float:
    """Return the objects that the job reads per second."""
    return need.total.read_bytes_per_s * dataset.files / dataset.bytes if dataset.bytes else 0.0


def checkpoint_share(need: Need, compute: ComputeFleet) -> int:
    """Return the bytes of one checkpoint that one compute node writes."""
    return math.ceil(need.total.checkpoint_bytes / compute.count)


def checkpoint_fault(need: Need, compute: ComputeFleet) -> Fault | None:
    """Return why checkpoints do not fit the compute nodes' own disks, or None."""
    share, machine = checkpoint_share(need, compute), compute.machine
    if not share:
        return None
    if machine.ssd_bytes and 2 * share > machine.ssd_bytes:
        return "a compute node's SSDs hold fewer than two checkpoints", _of(bytes_text, machine.ssd_bytes, 2 * share)
    rate = machine.ssd_write_bytes_per_s if machine.ssd_bytes else calibration.ROOT_DISK_WRITE_BYTES_PER_S
    least_rate = share / need.total.checkpoint_period_s
    if rate and rate < least_rate:
        return "a compute node writes a checkpoint slower than they come", _of(rate_text, rate, least_rate)
    return None
