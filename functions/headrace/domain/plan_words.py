"""Why a plan is as it is: the limit that decides, the reasons for each choice, and what was assumed."""

from __future__ import annotations

import math

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text, usd_text
from headrace.domain.candidates import Candidate, checkpoint_share, gets_per_s
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.fleets import nic_share
from headrace.domain.layout import flow_bytes_per_s, queues_per_connection
from headrace.domain.plan import BindingLimit

SENSITIVITY = (0.60, 0.80)
"""Other shares of line rate for which a plan says how many storage nodes it would take."""


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
    offered = float(_served(candidate) * nodes)
    return BindingLimit(name="smallest fleet", offered=offered, needed=needed, unit="bytes/s", because=text)


def _served(candidate: Candidate) -> int:
    return candidate.storage.served_bytes_per_s if candidate.storage else 0


def _rate_limit(candidate: Candidate) -> BindingLimit:
    machine = _storage_machine(candidate)
    nodes, needed = candidate.storage_nodes, candidate.need.total.read_bytes_per_s
    by_nic = nic_share(machine) <= machine.ssd_read_bytes_per_s
    each = rate_text(_served(candidate))
    basis = (
        f"{calibration.NIC_FRACTION:.1%} of its {rate_text(machine.nic_bytes_per_s)} NIC"
        if by_nic
        else f"its SSDs, below the {rate_text(nic_share(machine))} its NIC would carry"
    )
    return BindingLimit(
        name="storage NIC" if by_nic else "SSD read",
        offered=_served(candidate) * nodes,
        needed=needed,
        unit="bytes/s",
        because=f"{nodes} x {machine.name} serve {each} each, {basis}; {rate_text(needed)} are needed",
    )


def _capacity_limit(candidate: Candidate) -> BindingLimit:
    machine = _storage_machine(candidate)
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


def _storage_machine(candidate: Candidate) -> MachineType:
    return candidate.storage.machine if candidate.storage else candidate.compute.machine


def reasons(candidate: Candidate, catalog: Catalog) -> tuple[str, ...]:
    """Return why each part was chosen, in the order in which a reader asks."""
    return (*_compute_reasons(candidate, catalog), *_storage_reasons(candidate), *_scratch_reasons(candidate))


def _compute_reasons(candidate: Candidate, catalog: Catalog) -> tuple[str, ...]:
    compute, asked = candidate.compute, candidate.job.compute
    machine = compute.machine
    price = f"{usd_text(candidate.compute_usd_per_hour)}/h"
    if asked.instance_type:
        return (f"{compute.count} x {machine.name} as the job names it: {price}",)
    given = machine.accelerators * compute.count
    spare = f", {given - asked.count} more than asked" if given > asked.count else ""
    first = f"{compute.count} x {machine.name} give {given} {asked.accelerator}{spare}: {price}, the cheapest feasible"
    larger = next((t for t in catalog.types if t.carries(asked.accelerator or "") and t.accelerators > 1), None)
    if machine.accelerators == 1 and asked.count > 1 and larger is not None:
        apart = f"one accelerator per machine means no NVLink between them; name instance_type {larger.name} to have it"
        return (first, apart)
    return (first,)


def _storage_reasons(candidate: Candidate) -> tuple[str, ...]:
    if candidate.kind == "local":
        return (
            "no storage fleet: each compute node's own SSDs hold the whole data set and are read without a network",
        )
    if candidate.kind == "direct":
        return ("no copy: the job asks to read S3 itself, and nothing hides S3's latency from it",)
    found = [_fleet_reason(candidate), _shape_reason(candidate), *_mirror_reasons(candidate), _fabric_reason(candidate)]
    machine = _storage_machine(candidate)
    if machine.arch == "arm64":
        found.append(f"{machine.name} is arm64: its image is another than that of x86_64 machines")
    return (*found, *_sensitivity(candidate))


def _fleet_reason(candidate: Candidate) -> str:
    machine, price = _storage_machine(candidate), usd_text(candidate.storage_usd_per_hour)
    total = rate_text(_served(candidate) * candidate.storage_nodes)
    return (
        f"{candidate.storage_nodes} x {machine.name} serve {total} for {price}/h, the cheapest feasible storage fleet"
    )


def _shape_reason(candidate: Candidate) -> str:
    if candidate.shape == "striped":
        return (
            f"striped over all nodes: the largest file, {bytes_text(candidate.dataset.largest_bytes)}, exceeds a node's "
            f"fair share of {bytes_text(candidate.dataset.bytes / candidate.storage_nodes)}, so one node alone would serve it"
        )
    return "spread: each node fills a volume over its own SSDs straight from S3, with files balanced by size"


def _mirror_reasons(candidate: Candidate) -> tuple[str, ...]:
    return ("mirrored: the next node holds a second copy, and readers use both",) if candidate.copies > 1 else ()


def _fabric_reason(candidate: Candidate) -> str:
    queues, flow = queues_per_connection(candidate), flow_bytes_per_s(candidate)
    sized = f"{queues} queue{'s' if queues > 1 else ''} per connection, since one flow carries {rate_text(flow)}"
    if candidate.job.fabric == "roce":
        return f"NVMe/RoCE as the job asks; on EC2 this is soft-RoCE over ENA, for EFA has no RC queue pairs; {sized}"
    return f"NVMe/TCP, for EC2 has no RoCE hardware; {sized}"


def _sensitivity(candidate: Candidate) -> tuple[str, ...]:
    machine = _storage_machine(candidate)
    if candidate.job.storage_nodes or binding_limit(candidate).name != "storage NIC" or candidate.storage_nodes == 1:
        return ()
    counts = []
    for fraction in SENSITIVITY:
        served = min(machine.ssd_read_bytes_per_s, fraction * machine.nic_bytes_per_s)
        counts.append(f"{math.ceil(candidate.need.total.read_bytes_per_s / served)} at {fraction:.0%}")
    taken = f"{candidate.storage_nodes} nodes at {calibration.NIC_FRACTION:.1%} of line rate"
    return (f"sensitivity to the share of the NIC that NVMe/TCP carries: {taken}, {', '.join(counts)}",)


def _scratch_reasons(candidate: Candidate) -> tuple[str, ...]:
    machine, share = candidate.compute.machine, checkpoint_share(candidate.need, candidate.compute)
    where = "own SSDs" if machine.ssd_bytes else "root disk, for it has no local SSD"
    burst = f"; a checkpoint is {bytes_text(share)} per node" if share else ""
    return (f"results and checkpoints are written to each compute node's {where}{burst}",)


def assumptions(candidate: Candidate, catalog: Catalog, prices: PriceList) -> tuple[str, ...]:
    """Return what the plan takes for granted, so that a reader can disagree."""
    found = [
        *candidate.need.assumptions,
        f"machines only, at list prices of {prices.region} dated {prices.dated}; types as of {catalog.dated}",
    ]
    if candidate.kind != "local":
        found.append(f"NVMe/TCP or S3 traffic gets {calibration.NIC_FRACTION:.1%} of a NIC's sustained line rate")
    machines = [candidate.compute.machine, *([candidate.storage.machine] if candidate.storage else [])]
    for machine in machines:
        found += _machine_assumptions(machine, candidate)
    return (
        *found,
        *_market_assumptions(candidate, prices),
        *_place_assumptions(candidate),
        *_time_assumptions(candidate),
    )


def _machine_assumptions(machine: MachineType, candidate: Candidate) -> list[str]:
    found = []
    if machine.nic_basis != "baseline":
        why = "inferred, not measured" if machine.nic_basis == "override" else "EFA and further cards not counted"
        found.append(f"{machine.name}: {rate_text(machine.nic_bytes_per_s)} of IP traffic over one interface, {why}")
    uses_ssds = candidate.kind == "local" or (candidate.storage and machine is candidate.storage.machine)
    notes = {
        "extrapolated": "the rate of its SSDs is extrapolated per disk from a smaller size of the family",
        "iops_floor": "its SSDs are taken at the bytes of their random 4 KiB reads, below their sequential rate",
        "none": "the rate of its SSDs is measured nowhere; the job asks for them all the same",
    }
    if uses_ssds and machine.ssd_basis in notes:
        found.append(f"{machine.name}: {notes[machine.ssd_basis]}")
    return found


def _market_assumptions(candidate: Candidate, prices: PriceList) -> tuple[str, ...]:
    if candidate.compute.market != "spot":
        return ()
    name = candidate.compute.machine.name
    saving = prices.spot_savings_percent.get(name)
    if saving is None:
        return (f"no spot saving is known for {name}: its list price is used",)
    return (
        f"spot saving of {saving} % for {name} as of {prices.spot_dated}, which is old; the dear end is the list price",
    )


def _place_assumptions(candidate: Candidate) -> tuple[str, ...]:
    home = candidate.job.region
    away = [one for one in candidate.job.data if one.region not in (None, home)]
    return tuple(
        f"input {one.name!r} lies in {one.region}: its transfer to {home} is billed per GB and is not in the estimate"
        for one in away
    )


def _time_assumptions(candidate: Candidate) -> tuple[str, ...]:
    return (
        "the dear end allows slow launches, staging at half speed and training 10 % over duration_hours",
        f"every machine powers itself off {candidate.job.deadline_hours:g} h after the start",
    )
