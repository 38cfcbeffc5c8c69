"""Why each part of a plan was chosen, in words that a person can act on."""

from __future__ import annotations

import math

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text, usd_text
from headrace.domain.candidates import Candidate, checkpoint_share
from headrace.domain.catalog import Catalog
from headrace.domain.connections import flow_bytes_per_s
from headrace.domain.fleets import StorageOffer
from headrace.domain.layout import queues_per_connection
from headrace.domain.limits import binding_limit
from headrace.domain.phases import spans
from headrace.domain.plan import Placement
from headrace.domain.scratch import least_bytes, lent_bytes

SENSITIVITY = (0.60, 0.80)
"""Other shares of line rate for which a plan says how many storage nodes it would take."""


def reasons(candidate: Candidate, catalog: Catalog) -> tuple[str, ...]:
    """Return why each part was chosen, in the order in which a reader asks."""
    return (
        *_compute_reasons(candidate, catalog),
        *_storage_reasons(candidate),
        *_placement_reasons(candidate),
        *_scratch_reasons(candidate),
    )


def _compute_reasons(candidate: Candidate, catalog: Catalog) -> tuple[str, ...]:
    compute, asked = candidate.compute, candidate.job.compute
    machine = compute.machine
    price = f"{usd_text(candidate.compute_usd_per_hour)}/h"
    if asked.instance_type:
        return (f"{compute.count} x {machine.name} as the job names it: {price}",)
    given = machine.accelerators * compute.count
    spare = f", {given - asked.count} more than asked" if given > asked.count else ""
    first = f"{compute.count} x {machine.name}, {given} {asked.accelerator} in all{spare}: {price}"
    larger = next((t for t in catalog.types if t.carries(asked.accelerator or "") and t.accelerators > 1), None)
    if machine.accelerators == 1 and asked.count > 1 and larger is not None:
        return (first, f"one accelerator per machine: they meet over the network; {larger.name} would hold several")
    return (first,)


def _storage_reasons(candidate: Candidate) -> tuple[str, ...]:
    if candidate.kind == "local":
        return (
            "no storage fleet: each compute node's own SSDs hold the whole data set and are read without a network",
        )
    if candidate.kind == "direct":
        return ("no copy: the job asks to read S3 itself, and nothing hides S3's latency from it",)
    return _fleet_reasons(candidate, candidate.storage) if candidate.storage else ()


def _fleet_reasons(candidate: Candidate, offer: StorageOffer) -> tuple[str, ...]:
    name, nodes = offer.machine.name, candidate.storage_nodes
    asked = ", as many nodes as the job asks for" if candidate.job.storage_nodes else ""
    total, price = rate_text(offer.served_bytes_per_s * nodes), usd_text(candidate.storage_usd_per_hour)
    found = [f"{nodes} x {name} can serve {total} for {price}/h{asked}", _shape_reason(candidate)]
    if candidate.copies > 1:
        found.append("mirrored: the next node holds a second copy, and readers use both")
    found += [_fabric_reason(candidate, offer), *_waiting_reasons(candidate)]
    if offer.machine.arch == "arm64":
        found.append(f"{name} is arm64: its image is another than that of x86_64 machines")
    return (*found, *_sensitivity(candidate, offer))


def _waiting_reasons(candidate: Candidate) -> tuple[str, ...]:
    """Return what it saves that compute starts when the data are ready, and what it costs should none come."""
    waited_s = sum(span.eta_s for span in spans(candidate) if span.name in ("storage", "staging"))
    saved = usd_text(candidate.compute_usd_per_hour * waited_s / 3600)
    hourly = usd_text(candidate.storage_usd_per_hour)
    return (
        f"compute starts when the data are ready: launched with the storage it would bill {saved} more",
        f"should no compute machines come, the filled storage bills {hourly}/h while the run waits for them",
    )


def _shape_reason(candidate: Candidate) -> str:
    if candidate.shape == "striped":
        largest = bytes_text(candidate.dataset.largest_bytes)
        share = bytes_text(candidate.dataset.bytes / candidate.storage_nodes)
        return f"striped over all nodes: the largest file has {largest} and a node's fair share is {share}"
    return "spread: each node fills a volume over its own SSDs straight from S3, with files balanced by size"


def _fabric_reason(candidate: Candidate, offer: StorageOffer) -> str:
    queues, flow = queues_per_connection(candidate), flow_bytes_per_s(candidate.compute, offer)
    sized = f"{queues} queue{'s' if queues > 1 else ''} per connection, since one flow carries {rate_text(flow)}"
    if candidate.job.fabric == "roce":
        return f"NVMe/RoCE as the job asks; on EC2 this is soft-RoCE over ENA, for EFA has no RC queue pairs; {sized}"
    return f"NVMe/TCP, for EC2 has no RoCE hardware; {sized}"


def _sensitivity(candidate: Candidate, offer: StorageOffer) -> tuple[str, ...]:
    machine = offer.machine
    if candidate.job.storage_nodes or binding_limit(candidate).name != "storage NIC" or candidate.storage_nodes == 1:
        return ()
    counts = []
    for fraction in SENSITIVITY:
        served = min(machine.read_bytes_per_s(offer.request_bytes), fraction * machine.nic_bytes_per_s)
        counts.append(f"{math.ceil(candidate.need.total.read_bytes_per_s / served)} at {fraction:.0%}")
    taken = f"{candidate.storage_nodes} nodes at {calibration.NIC_FRACTION:.1%} of line rate"
    return (f"sensitivity to the share of the NIC that NVMe/TCP carries: {taken}, {', '.join(counts)}",)


def _placement_reasons(candidate: Candidate) -> tuple[str, ...]:
    found = []
    if candidate.kind == "fleet":
        found.append("both fleets belong in one zone: between zones each gigabyte costs 0.01 USD each way, and latency")
    where = placement(candidate)
    if where == "cluster":
        found.append("machines that train are asked for in one cluster placement group, and outside it if it is full")
    elif where == "cluster only":
        found.append("machines that train come in one cluster placement group, as the job asks, or not at all")
    elif candidate.compute.machine.accelerators and candidate.compute.count > 1:
        found.append("machines in a reservation stand where it is: no cluster placement group is asked for")
    return tuple(found)


def placement(candidate: Candidate) -> Placement:
    """Return whether the machines that train are asked for in a cluster placement group.

    A launch into a reservation names none: it must name the reservation's own, or is refused (EC2 user guide,
    "Capacity Reservations in cluster placement groups"), and a capacity block is collocated as it is.
    """
    compute, asked = candidate.compute, candidate.job.compute
    if compute.count == 1 or asked.reservation:
        return "one zone"
    if asked.placement == "cluster":
        return "cluster only"
    return "cluster" if compute.machine.accelerators else "one zone"


def _scratch_reasons(candidate: Candidate) -> tuple[str, ...]:
    share = checkpoint_share(candidate.need, candidate.compute)
    burst = f"; a checkpoint is {bytes_text(share)} per node" if share else ""
    return (f"results and checkpoints are written to {_scratch_place(candidate)}{burst}",)


def _scratch_place(candidate: Candidate) -> str:
    if candidate.compute.machine.ssd_bytes:
        return "each compute node's own SSDs"
    if lent := lent_bytes(candidate):
        return f"{bytes_text(lent)} of a storage node's SSDs, which uploads what is left when a compute node is lost"
    why = ""
    if candidate.storage is not None:
        least = bytes_text(least_bytes(candidate))
        why = (
            ", and a mirrored run must not depend on one storage node"
            if candidate.copies > 1
            else f", and the data set leaves no {least} for it on a storage node"
        )
    return f"each compute node's root disk, for it has no local SSD{why}"
