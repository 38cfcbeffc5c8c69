"""What the next cheaper option would be, and what it lacks, so that a reader sees what the last dollar buys."""

from __future__ import annotations

from headrace.domain.amounts import usd_text
from headrace.domain.candidates import Candidate, local_fault
from headrace.domain.fleets import StorageOffer
from headrace.domain.limits import limits
from headrace.domain.sizing import volumes_that_hold


def next_cheaper(candidate: Candidate) -> str:
    """Return one sentence: one storage node less, or no storage fleet at all, and which limit that would pass."""
    if candidate.storage is None:
        return "nothing is cheaper with these machines: only those that train bill"
    if candidate.storage_nodes > candidate.copies:
        return _one_node_less(candidate, candidate.storage)
    return _without_a_fleet(candidate, candidate.storage)


def _one_node_less(candidate: Candidate, offer: StorageOffer) -> str:
    nodes = candidate.storage_nodes - 1
    saves = f"{nodes} x {offer.machine.name} would save {usd_text(offer.usd_per_hour)}/h"
    volumes = volumes_that_hold(candidate.dataset, candidate.copies, offer, nodes)
    fewer = candidate.with_nodes(nodes, volumes)
    passed = [one.because for one in limits(fewer) if one.needed > one.offered]
    if passed:
        return f"{saves} but not do: {'; '.join(passed)}"
    if not volumes:
        return f"{saves} but not do: one of its volumes could be given more files than it holds"
    if candidate.job.storage_nodes:
        return f"{saves} and do; the job asks for {candidate.storage_nodes}"
    return f"{saves} and do, but staging would take longer and cost more"


def _without_a_fleet(candidate: Candidate, offer: StorageOffer) -> str:
    saves = f"no storage fleet would save {usd_text(offer.usd_per_hour * candidate.storage_nodes)}/h"
    fault = local_fault(candidate.job, candidate.dataset, candidate.need, candidate.compute)
    if fault is not None:
        return f"{saves} but not do: {fault[0]}{fault[1]}"
    return f"{saves}, but then each compute node copies all of the data while it bills"
