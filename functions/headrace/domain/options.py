"""Writes a candidate out as an option of the plan, fleets, volumes, phases and reasons included."""

from __future__ import annotations

from headrace.domain.candidates import Candidate
from headrace.domain.connections import connections_fit, pair_bytes_per_s
from headrace.domain.fleets import StorageOffer, same_layout
from headrace.domain.layout import queues_per_connection, volumes
from headrace.domain.limits import binding_limit
from headrace.domain.losses import losses, usd_expected
from headrace.domain.model import USD_MAX
from headrace.domain.next_cheaper import next_cheaper
from headrace.domain.phases import crossings, phase_plans, usd_high, usd_low
from headrace.domain.plan import FleetPlan, OptionPlan
from headrace.domain.reasons import meet_in_cluster, reasons
from headrace.domain.search import Search

FALLBACK_TYPES = 5


def option(candidate: Candidate, search: Search) -> OptionPlan:
    """Return the candidate as an option, with the types that may stand in for its own."""
    fleets = [_compute_plan(candidate, search)]
    if candidate.storage is not None:
        fleets.insert(0, _storage_plan(candidate, candidate.storage, search))
    roce = candidate.job.fabric == "roce"
    return OptionPlan(
        storage=candidate.kind,
        fleets=tuple(fleets),
        volumes=volumes(candidate),
        fabric=("roce" if roce else "tcp") if candidate.kind == "fleet" else "none",
        queues_per_connection=queues_per_connection(candidate),
        phases=phase_plans(candidate),
        usd_per_hour=round(candidate.storage_usd_per_hour + candidate.compute_usd_per_hour, 6),
        usd_low=round(usd_low(candidate), 4),
        usd_high=round(usd_high(candidate), 4),
        usd_expected=round(min(usd_expected(candidate), USD_MAX), 4),
        chance_of_loss=round(losses(candidate).chance, 6),
        transfer_usd=round(crossings(candidate) * candidate.need.transfer_usd, 4),
        limit=binding_limit(candidate),
        next_cheaper=next_cheaper(candidate),
        reasons=reasons(candidate, search.catalog),
    )


def _storage_plan(candidate: Candidate, offer: StorageOffer, search: Search) -> FleetPlan:
    machine = offer.machine
    return FleetPlan(
        role="storage",
        instance_type=machine.name,
        count=candidate.storage_nodes,
        fallback_types=_storage_fallbacks(candidate, offer, search),
        arch=machine.arch,
        usd_per_hour_each=offer.usd_per_hour,
        nic_bytes_per_s=machine.nic_bytes_per_s,
        disk_count=machine.disk_count,
        disk_bytes=machine.disk_bytes,
    )


def _storage_fallbacks(candidate: Candidate, offer: StorageOffer, search: Search) -> tuple[str, ...]:
    """Return types with which the same count and the same volumes suffice, cheapest first, within the budget."""
    needed, found = candidate.need.total.read_bytes_per_s, []
    for other in same_layout(offer, search.offers):
        nodes, each = candidate.storage_nodes, candidate.need.node_bytes_per_s
        serves = other.served_bytes_per_s * nodes >= needed
        reaches = pair_bytes_per_s(candidate.compute, other) * nodes >= each
        connects = connections_fit(each, candidate.compute, other, nodes)
        if serves and reaches and connects and affordable(candidate.with_storage(other), search):
            found.append(other.machine.name)
    return tuple(found[:FALLBACK_TYPES])


def affordable(candidate: Candidate, search: Search) -> bool:
    """Tell whether the budget, if there is one, covers the candidate's dear end."""
    return search.job.budget_usd is None or usd_high(candidate) <= search.job.budget_usd


def _compute_plan(candidate: Candidate, search: Search) -> FleetPlan:
    compute = candidate.compute
    machine = compute.machine
    return FleetPlan(
        role="compute",
        instance_type=machine.name,
        count=compute.count,
        fallback_types=_compute_fallbacks(candidate, search),
        arch=machine.arch,
        market=compute.market,
        placement="cluster" if meet_in_cluster(candidate) else "one zone",
        usd_per_hour_each=compute.usd_per_hour,
        nic_bytes_per_s=machine.nic_bytes_per_s,
        disk_count=machine.disk_count,
        disk_bytes=machine.disk_bytes,
        accelerators_each=machine.accelerators,
        reservation=search.job.compute.reservation,
    )


def _compute_fallbacks(candidate: Candidate, search: Search) -> tuple[str, ...]:
    """Return types with as many accelerators and SSDs each that the same storage feeds; a named type has none."""
    able = {
        one.compute.machine.name: one.compute.usd_per_hour
        for one in search.found
        if _stands_in(one, candidate) and affordable(candidate.with_compute(one.compute), search)
    }
    cheapest_first = sorted(able, key=lambda name: (able[name], name))
    return tuple(cheapest_first[:FALLBACK_TYPES])


def _stands_in(other: Candidate, chosen: Candidate) -> bool:
    theirs, ours = other.compute.machine, chosen.compute.machine
    same_shape = (theirs.arch, theirs.accelerators, theirs.disk_count) == (
        ours.arch,
        ours.accelerators,
        ours.disk_count,
    )
    same_storage = other.kind == chosen.kind and other.storage is chosen.storage
    return (
        theirs.name != ours.name
        and same_shape
        and theirs.disk_bytes >= ours.disk_bytes
        and same_storage
        and other.least_nodes <= chosen.storage_nodes
    )
