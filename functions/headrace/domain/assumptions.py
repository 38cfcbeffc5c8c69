"""What a plan takes for granted, printed with it so that a reader can disagree."""

from __future__ import annotations

import math

from headrace.domain import calibration
from headrace.domain.amounts import bytes_text, rate_text, usd_text
from headrace.domain.candidates import Candidate, gets_per_s
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.phases import copy_requests, spans
from headrace.domain.requests import states_reads
from headrace.domain.transfer import transfer_words

_SECONDS_PER_HOUR = 3600
S3_GETS = "s3 GET and other"
"""Name of the price of a thousand GETs."""


def assumptions(candidate: Candidate, catalog: Catalog, prices: PriceList) -> tuple[str, ...]:
    """Return what the plan takes for granted, so that a reader can disagree."""
    found = [
        *candidate.need.assumptions,
        f"machines only, at list prices of {prices.region} dated {prices.dated}; types as of {catalog.dated}",
    ]
    if states_reads(candidate.job.demand) and candidate.kind != "direct":
        found.append(f"the loader reads {bytes_text(candidate.need.total.read_request_bytes)} at a time")
    if candidate.job.demand.read_latency_ms is not None:
        taken_ms = 1000 * calibration.READ_LATENCY_S[candidate.kind]
        found.append(
            f"one read takes {taken_ms:g} ms from {candidate.kind} storage; a figure of practice, not measured here"
        )
    if candidate.kind != "local":
        found.append(f"NVMe/TCP or S3 traffic gets {calibration.NIC_FRACTION:.1%} of a NIC's sustained line rate")
    if candidate.kind != "direct":
        found += _copy_assumptions(candidate, prices)
    machines = [candidate.compute.machine, *([candidate.storage.machine] if candidate.storage else [])]
    for machine in machines:
        found += _machine_assumptions(machine, candidate)
    if candidate.kind == "direct" and gets_per_s(candidate.dataset, candidate.need) > calibration.S3_GETS_PER_S:
        found.append("S3 gives fewer requests than the assumed reads take, so the job reads more slowly than assumed")
    own_rate = candidate.compute.machine.read_bytes_per_s(candidate.need.total.read_request_bytes)
    if candidate.kind == "local" and 0 < own_rate < candidate.need.node_bytes_per_s:
        found.append("the compute nodes' SSDs read less than is assumed, so the job reads more slowly than assumed")
    return (
        *found,
        _loss_assumption(candidate),
        *_market_assumptions(candidate, prices),
        *transfer_words(candidate.job, candidate.dataset, prices),
        *_time_assumptions(candidate),
    )


def _copy_assumptions(candidate: Candidate, prices: PriceList) -> list[str]:
    gets, known = copy_requests(candidate), {one.name: one.usd for one in prices.services}
    found = ["S3 gives as many bytes as the NICs take, and as many requests as one prefix does before S3 splits it"]
    found += [
        f"{one.endpoint} gives as many bytes as another region of AWS would, and what it asks for them is not known"
        for one in candidate.job.data
        if one.endpoint
    ]
    if S3_GETS in known:
        found.append(f"{gets:,} GETs cost {usd_text(gets / 1000 * known[S3_GETS])}, which is not in the estimate")
    return found


def _machine_assumptions(machine: MachineType, candidate: Candidate) -> list[str]:
    found = []
    if machine.nic_basis == "given":
        found.append(f"{machine.name}: {rate_text(machine.nic_bytes_per_s)} of IP traffic, as the overrides give it")
    elif machine.nic_basis != "baseline":
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


def _loss_assumption(candidate: Candidate) -> str:
    kind = "fails and is started again" if candidate.job.on_node_loss == "fail" else "resumes"
    each = calibration.HOURS_PER_MONTH * candidate.compute.losses_per_hour
    text = f"a compute node is lost with {-math.expm1(-each):.2g} chance a month; the run then {kind}"
    if candidate.storage is None:
        return text
    stays = ", and a mirrored one is not missed" if candidate.copies > 1 else ""
    return f"{text}; a storage node with {calibration.HOURS_PER_MONTH * calibration.MACHINE_LOSSES_PER_HOUR:.2g}{stays}"


def _market_assumptions(candidate: Candidate, prices: PriceList) -> tuple[str, ...]:
    if candidate.compute.market != "spot":
        return _reserved(candidate, prices)
    name = candidate.compute.machine.name
    saving = prices.spot_savings_percent.get(name)
    if saving is None:
        return (f"no spot saving is known for {name}: its list price is used",)
    return (
        f"spot saving of {saving} % for {name} as of {prices.spot_dated}, which is old; the dear end is the list price",
    )


def _reserved(candidate: Candidate, prices: PriceList) -> tuple[str, ...]:
    held, name = candidate.job.compute.reservation, candidate.compute.machine.name
    if candidate.compute.market == "capacity-block":
        whose = "in the overrides" if name in prices.capacity_blocks else "of the list on demand, as its own is unknown"
        return (f"the block {held} is paid in advance; its hours count at the price {whose}",)
    used = [one for one in (name, candidate.storage.machine.name if candidate.storage else "") if one in prices.given]
    given = tuple(f"{one}: the price is from the overrides, not from the list" for one in used)
    if held is None:
        return given
    return (*given, f"the machines of {held} bill whether they are used or not; their hours count all the same")


def _time_assumptions(candidate: Candidate) -> tuple[str, ...]:
    hours = sum(span.eta_s for span in spans(candidate)) / _SECONDS_PER_HOUR
    deadline = candidate.job.deadline_hours
    late = (
        f"the phases take {hours:.3g} h, longer than the {deadline:g} h after which the run is ended: raise max_hours"
    )
    return (
        *((late,) if hours > deadline else ()),
        "the dear end allows slow launches, staging at half speed and training 10 % over duration_hours",
        f"every machine powers itself off {deadline:g} h after the start",
    )
