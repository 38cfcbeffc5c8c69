"""The limit that decides how large a plan must be, with the numbers behind it."""

from __future__ import annotations

import math

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text
from headrace.domain.candidates import Candidate, gets_per_s
from headrace.domain.catalog import MachineType
from headrace.domain.fleets import nic_share
from headrace.domain.plan import BindingLimit


def binding_limit(candidate: Candidate) -> BindingLimit:
    """Return the limit that decides the size."""
    if candidate.kind == "local":
        return _local_limit(candidate)
    if candidate.kind == "direct":
        return _direct_limit(candidate)
    return _fleet_limit(candidate)


def _fleet_limit(candidate: Candidate) -> BindingLimit:
    nodes, least = candidate.storage_nodes, candidate.least_nodes
    needed = candidate.need.total.read_bytes_per_s
    if candidate.job.storage_nodes:
        text = f"the job asks for {nodes} storage nodes; {least} would do"
        return BindingLimit(name="storage_nodes", offered=nodes, needed=least, unit="nodes", because=text)
    if least > max(candidate.nodes_for_rate, candidate.copies):
        return _capacity_limit(candidate)
    if candidate.need.assumed and least <= candidate.copies:
        return _reader_limit(candidate)
    if least > candidate.copies or candidate.nodes_for_rate == least:
        return _rate_limit(candidate)
    text = f"{least} nodes are the fewest there can be, and serve more than is needed"
    offered = float(served_bytes_per_s(candidate) * nodes)
    return BindingLimit(name="smallest fleet", offered=offered, needed=needed, unit="bytes/s", because=text)


def served_bytes_per_s(candidate: Candidate) -> int:
    """Return what one storage node serves; 0 without a fleet."""
    return candidate.storage.served_bytes_per_s if candidate.storage else 0


def _rate_limit(candidate: Candidate) -> BindingLimit:
    machine = storage_machine(candidate)
    nodes, needed = candidate.storage_nodes, candidate.need.total.read_bytes_per_s
    by_nic = nic_share(machine) <= machine.ssd_read_bytes_per_s
    each = rate_text(served_bytes_per_s(candidate))
    basis = (
        f"{calibration.NIC_FRACTION:.1%} of its {rate_text(machine.nic_bytes_per_s)} NIC"
        if by_nic
        else f"its SSDs, below the {rate_text(nic_share(machine))} its NIC would carry"
    )
    return BindingLimit(
        name="storage NIC" if by_nic else "SSD read",
        offered=served_bytes_per_s(candidate) * nodes,
        needed=needed,
        unit="bytes/s",
        because=f"{nodes} x {machine.name} serve {each} each, {basis}; {rate_text(needed)} are needed",
    )


def _capacity_limit(candidate: Candidate) -> BindingLimit:
    machine = storage_machine(candidate)
    offered, needed = machine.ssd_bytes * candidate.storage_nodes, candidate.need.total.capacity_bytes
    text = (
        f"{candidate.storage_nodes} x {bytes_text(machine.ssd_bytes)} of SSD for {bytes_text(needed)}"
        f" with file system headroom{' and mirror' if candidate.copies > 1 else ''}, files balanced over nodes"
    )
    return BindingLimit(name="SSD capacity", offered=offered, needed=needed, unit="bytes", because=text)


def _reader_limit(candidate: Candidate) -> BindingLimit:
    """Return the limit where the assumed demand is all that the compute nodes' NICs bring in, or less."""
    share = math.floor(nic_share(candidate.compute.machine)) * candidate.compute.count
    needed = candidate.need.total.read_bytes_per_s
    text = (
        f"{candidate.storage_nodes} node serves the assumed {rate_text(needed)}; compute NICs take {rate_text(share)}"
    )
    return BindingLimit(name="compute NIC", offered=share, needed=needed, unit="bytes/s", because=text)


def _local_limit(candidate: Candidate) -> BindingLimit:
    machine, needed = candidate.compute.machine, candidate.need.node_bytes_per_s
    if machine.ssd_read_bytes_per_s:
        text = f"each {machine.name} reads its own SSDs at {rate_text(machine.ssd_read_bytes_per_s)}"
        return BindingLimit(
            name="SSD read", offered=machine.ssd_read_bytes_per_s, needed=needed, unit="bytes/s", because=text
        )
    text = f"each {machine.name} holds all of the data set; how fast its SSDs read is measured nowhere"
    held = candidate.need.total.capacity_bytes
    return BindingLimit(name="SSD capacity", offered=machine.ssd_bytes, needed=held, unit="bytes", because=text)


def _direct_limit(candidate: Candidate) -> BindingLimit:
    gets = gets_per_s(candidate.dataset, candidate.need)
    share = nic_share(candidate.compute.machine) * candidate.compute.count
    needed = candidate.need.total.read_bytes_per_s
    if gets / calibration.S3_GETS_PER_S > needed / share:
        text = (
            f"reading an object at a time takes {gets:,.0f} GET/s, and one prefix gives {calibration.S3_GETS_PER_S:,}"
        )
        return BindingLimit(
            name="S3", offered=calibration.S3_GETS_PER_S, needed=round(gets, 1), unit="GET/s", because=text
        )
    text = f"the compute NICs bring in {rate_text(share)} from S3; {rate_text(needed)} are needed"
    return BindingLimit(name="compute NIC", offered=math.floor(share), needed=needed, unit="bytes/s", because=text)


def storage_machine(candidate: Candidate) -> MachineType:
    """Return the machine whose SSDs hold the data set."""
    return candidate.storage.machine if candidate.storage else candidate.compute.machine
