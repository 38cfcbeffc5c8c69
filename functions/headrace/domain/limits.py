"""The limit that decides how large a plan must be: the one with the least slack, with the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Callable

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text
from headrace.domain.candidates import Candidate, gets_per_s
from headrace.domain.catalog import MachineType
from headrace.domain.connections import pair_bytes_per_s, queue_budgets
from headrace.domain.demand import Need, capacity_bytes
from headrace.domain.fleets import StorageOffer, nic_share
from headrace.domain.plan import BindingLimit


def binding_limit(candidate: Candidate) -> BindingLimit:
    """Return the limit that is nearest to being passed, or the number of nodes that the job asks for."""
    if candidate.job.storage_nodes and candidate.kind == "fleet":
        return _asked(candidate)
    return max(limits(candidate), key=lambda one: one.needed / one.offered)


def limits(candidate: Candidate) -> list[BindingLimit]:
    """Return every limit that the candidate stays within."""
    if candidate.storage is not None:
        return _fleet_limits(candidate, candidate.storage)
    if candidate.kind == "local":
        return _local_limits(candidate, candidate.compute.machine)
    return _direct_limits(candidate)


def _limit(
    name: str, offered: float, needed: float, because: str, text: Callable[[float], str] = rate_text
) -> BindingLimit:
    unit = "bytes/s" if text is rate_text else "bytes"
    words = f"{because}: {text(offered)}; {text(needed)} needed"
    return BindingLimit(name=name, offered=math.floor(offered), needed=needed, unit=unit, because=words)


def _asked(candidate: Candidate) -> BindingLimit:
    nodes, least = candidate.storage_nodes, candidate.least_nodes
    text = f"the job asks for {nodes} storage nodes; {least} would do"
    return BindingLimit(name="storage_nodes", offered=nodes, needed=least, unit="nodes", because=text)


def _fleet_limits(candidate: Candidate, offer: StorageOffer) -> list[BindingLimit]:
    machine, nodes, need = offer.machine, candidate.storage_nodes, candidate.need
    fleet, reads = f"{nodes} x {machine.name}", need.total.read_bytes_per_s
    pairs = nodes * pair_bytes_per_s(candidate.compute, offer)
    mirrored = ", mirrored" if candidate.copies > 1 else ""
    return [
        _limit("storage NIC", nodes * nic_share(machine), reads, f"{fleet} at {_share_text(machine)} each"),
        _limit("SSD read", nodes * machine.ssd_read_bytes_per_s, reads, f"the SSDs of {fleet}"),
        *_operations(nodes * machine.ssd_read_iops, need.total.reads_per_s, need, f"the SSDs of {fleet}"),
        _limit(
            "SSD capacity", nodes * machine.ssd_bytes, _held(candidate), f"the SSDs of {fleet}{mirrored}", bytes_text
        ),
        _reader_limit(candidate),
        _limit(
            "fabric connections",
            pairs,
            need.node_bytes_per_s,
            "one flow per queue and vCPU, all storage nodes together",
        ),
        *_queue_limits(candidate, offer),
    ]


def _queue_limits(candidate: Candidate, offer: StorageOffer) -> list[BindingLimit]:
    budgets = queue_budgets(candidate.need.node_bytes_per_s, candidate.compute, offer, candidate.storage_nodes)
    found = []
    for whose, offered, needed in budgets:
        text = f"{whose} has memory for {offered:,} queues; {needed:,} needed"
        found.append(BindingLimit(name="fabric queues", offered=offered, needed=needed, unit="queues", because=text))
    return found


def _operations(offered: int, needed: int, need: Need, whose: str) -> list[BindingLimit]:
    """Return the limit on single reads, where it is known."""
    if not offered:
        return []
    text = f"{whose}: {offered:,} reads/s; {needed:,} needed, {bytes_text(need.total.read_request_bytes)} each"
    return [BindingLimit(name="SSD operations", offered=offered, needed=needed, unit="IOPS", because=text)]


def _share_text(machine: MachineType) -> str:
    share = rate_text(nic_share(machine))
    return f"{share} ({calibration.NIC_FRACTION:.1%} of a {rate_text(machine.nic_bytes_per_s)} NIC)"


def _held(candidate: Candidate) -> int:
    dataset = candidate.dataset
    return candidate.copies * capacity_bytes(dataset.bytes, dataset.files, max(1, candidate.volumes))


def _reader_limit(candidate: Candidate) -> BindingLimit:
    machine = candidate.compute.machine
    because = f"the NIC of a compute node, {machine.name}, at {_share_text(machine)}"
    return _limit("compute NIC", nic_share(machine), candidate.need.node_bytes_per_s, because)


def _local_limits(candidate: Candidate, machine: MachineType) -> list[BindingLimit]:
    held = _limit("SSD capacity", machine.ssd_bytes, _held(candidate), f"the SSDs of each {machine.name}", bytes_text)
    if not machine.ssd_read_bytes_per_s:
        return [held]
    need, whose = candidate.need, f"the SSDs of each {machine.name}"
    each = math.ceil(need.node_bytes_per_s / max(1, need.total.read_request_bytes))
    return [
        held,
        _limit("SSD read", machine.ssd_read_bytes_per_s, need.node_bytes_per_s, whose),
        *_operations(machine.ssd_read_iops, each, need, whose),
    ]


def _direct_limits(candidate: Candidate) -> list[BindingLimit]:
    gets = gets_per_s(candidate.dataset, candidate.need)
    text = f"one S3 prefix gives {calibration.S3_GETS_PER_S:,} GET/s; {gets:,.0f} needed, an object at a time"
    offered = calibration.S3_GETS_PER_S
    s3 = BindingLimit(name="S3", offered=offered, needed=round(gets, 1), unit="GET/s", because=text)
    return [_reader_limit(candidate), s3]
