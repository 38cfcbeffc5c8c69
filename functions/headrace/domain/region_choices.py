"""Data in one region and machines in another: copying once, caching, reading across, or moving the machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.domain.amounts import duration_text, usd_text
from headrace.domain.candidates import Candidate
from headrace.domain.errors import InfeasibleJob
from headrace.domain.phases import crossings, staging, usd_low
from headrace.domain.plan import Plan, RegionChoice

PlanIn = Callable[[str], Plan]
"""Plans the same job with its machines in another region. Raises InfeasibleJob."""


def region_choices(candidate: Candidate, regions: tuple[str, ...], plan_in: PlanIn) -> tuple[RegionChoice, ...]:
    """Return every way to bring data and machines together; nothing when all of the data are where the machines are."""
    return tuple(_choices(candidate, regions, plan_in)) if regions else ()


def _choices(candidate: Candidate, regions: tuple[str, ...], plan_in: PlanIn) -> Iterator[RegionChoice]:
    if candidate.kind != "direct":
        yield _copying(candidate)
    yield _caching(candidate)
    yield _reading_across(candidate)
    for region in regions:
        yield _moving(candidate, region, plan_in)


def epoch_hours(candidate: Candidate) -> float:
    """Return how long one pass over the data takes at the demanded rate."""
    rate = candidate.need.total.read_bytes_per_s
    return candidate.dataset.bytes / rate / 3600 if rate else 0.0


def _copying(candidate: Candidate) -> RegionChoice:
    seconds = staging(candidate).seconds
    times = crossings(candidate)
    return RegionChoice(
        way="copy once",
        region=candidate.job.region,
        usd_low=round(usd_low(candidate), 4),
        transfer_usd=round(times * candidate.need.transfer_usd, 4),
        because=f"the data cross {times:g} times, in {duration_text(seconds)}, and no epoch pays again",
    )


def _caching(candidate: Candidate) -> RegionChoice:
    caches = candidate.compute.count
    first = caches * candidate.need.transfer_usd
    waits = duration_text(staging(candidate).seconds) if candidate.kind != "direct" else "no time"
    return RegionChoice(
        way="cache lazily",
        region=candidate.job.region,
        is_available=False,
        transfer_usd=round(first, 4),
        because=(
            f"not available yet: training would start {waits} sooner; each of {caches} compute nodes would fill its "
            f"own cache in the first epoch, and later ones pay nothing where it holds everything"
        ),
    )


def _reading_across(candidate: Candidate) -> RegionChoice:
    each = candidate.need.transfer_usd
    copying = crossings(candidate) * each + candidate.storage_usd_per_hour * candidate.job.duration_hours
    epochs = copying / each if each and candidate.kind != "direct" else None
    pays = f"; copying is cheaper from {epochs:.3g} epochs on" if epochs else ""
    return RegionChoice(
        way="read across",
        region=candidate.job.region,
        transfer_usd=0.0,
        transfer_usd_per_epoch=round(each, 4),
        break_even_epochs=round(epochs, 3) if epochs else None,
        because=f"storage: direct pays the transfer in every epoch and waits for S3 in every read{pays}",
    )


def _moving(candidate: Candidate, region: str, plan_in: PlanIn) -> RegionChoice:
    try:
        there = plan_in(region).chosen
    except InfeasibleJob as refusal:
        return RegionChoice(way="move the machines", region=region, is_available=False, because=str(refusal))
    here = candidate.storage_usd_per_hour + candidate.compute_usd_per_hour
    saved = (there.usd_per_hour - here) * epoch_hours(candidate)
    moved = crossings(candidate) * candidate.need.transfer_usd
    epochs = (moved - there.transfer_usd) / saved if saved > 0 else None
    pays = f"copying pays from {epochs:.3g} epochs on" if epochs is not None else "copying never pays"
    machines = ", ".join(f"{fleet.count} x {fleet.instance_type}" for fleet in there.fleets)
    return RegionChoice(
        way="move the machines",
        region=region,
        usd_low=there.usd_low,
        transfer_usd=there.transfer_usd,
        break_even_epochs=round(epochs, 3) if epochs is not None else None,
        because=f"{machines} at {usd_text(there.usd_per_hour)}/h there, {usd_text(here)}/h here: {pays}",
    )
