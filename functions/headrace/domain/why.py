"""Why a machine type was not chosen, or that it was, in each of the roles it could have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.domain.amounts import usd_text
from headrace.domain.budget import within_budget
from headrace.domain.candidates import Candidate
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.fleets import no_storage_node
from headrace.domain.job import JobSpec
from headrace.domain.limits import binding_limit
from headrace.domain.losses import usd_expected
from headrace.domain.model import Contract
from headrace.domain.phases import usd_high
from headrace.domain.plan import Role
from headrace.domain.search import Search
from headrace.domain.unknown_names import unknown_type


class WhyType(Contract):
    """What speaks for or against one type; `chosen_as` is empty when it is not chosen."""

    instance_type: str
    chosen_as: tuple[Role, ...]
    reasons: tuple[str, ...]


def why(name: str, job: JobSpec, dataset: DatasetSummary, catalog: Catalog, prices: PriceList) -> WhyType:
    """Return why the plan of the job has this type or has it not.

    Raises InfeasibleJob for a type that the region does not offer, and when the job has no plan.
    """
    machine = catalog.find(name)
    if machine is None:
        raise InfeasibleJob(unknown_type(name, catalog))
    search = Search(job, dataset, catalog, prices)
    ranked = search.ranked()
    best = within_budget(search, ranked)[0]
    chosen: list[Role] = []
    if best.storage is not None and best.storage.machine is machine:
        chosen.append("storage")
    if best.compute.machine is machine:
        chosen.append("compute")
    reasons = (*_as_storage(machine, search, ranked, best), *_as_compute(machine, search, ranked, best))
    return WhyType(instance_type=name, chosen_as=tuple(chosen), reasons=reasons)


def _as_storage(machine: MachineType, search: Search, ranked: Sequence[Candidate], best: Candidate) -> Iterator[str]:
    if search.job.storage not in ("auto", "fleet"):
        yield f"as storage: the job asks for storage: {search.job.storage}, which has no storage machines"
        return
    refusal = no_storage_node(machine, search.prices)
    if refusal:
        yield f"as storage: {refusal}"
        return
    ways = [one for one in ranked if one.storage is not None and one.storage.machine is machine]
    only = search.catalog.model_copy(update={"types": _only_storage(machine, search)})
    yield f"as storage: {_compared(ways, best) or _refused(search, only, 'storage: ')}"


def _only_storage(machine: MachineType, search: Search) -> tuple[MachineType, ...]:
    """Return the catalog with this type alone to store on, and the rest stripped of their disks."""
    bare = {"disk_count": 0, "disk_bytes": 0}
    return tuple(one if one is machine else one.model_copy(update=bare) for one in search.catalog.types)


def _as_compute(machine: MachineType, search: Search, ranked: Sequence[Candidate], best: Candidate) -> Iterator[str]:
    asked = search.job.compute
    if asked.instance_type not in (None, machine.name):
        yield f"as compute: the job names {asked.instance_type}"
        return
    if asked.accelerator is not None and not machine.carries(asked.accelerator):
        has = f"{machine.accelerators} x {machine.accelerator}" if machine.accelerators else "no accelerator"
        yield f"as compute: the job asks for {asked.accelerator}, it has {has}"
        return
    ways = [one for one in ranked if one.compute.machine is machine]
    others: Callable[[MachineType], bool] = lambda one: one is machine or not one.carries(asked.accelerator or "")  # noqa: E731
    only = search.catalog.model_copy(update={"types": tuple(filter(others, search.catalog.types))})
    yield f"as compute: {_compared(ways, best) or _refused(search, only, '')}"


def _compared(ways: Sequence[Candidate], best: Candidate) -> str:
    """Return what the cheapest of these ways costs beside the chosen one, or nothing when there is none."""
    if not ways:
        return ""
    if best in ways:
        return f"chosen: {_machines(best)} for {usd_text(usd_expected(best))}; {binding_limit(best).because}"
    way = ways[0]
    more = usd_expected(way) - usd_expected(best)
    beside = f"{usd_text(more)} more than {_machines(best)}" if more > 0 else "no more than the chosen"
    over = _over_budget(way)
    return f"{_machines(way)} would do for {usd_text(usd_expected(way))}, {beside}{over}; {binding_limit(way).because}"


def _over_budget(way: Candidate) -> str:
    budget_usd = way.job.budget_usd
    over = budget_usd is not None and usd_high(way) > budget_usd
    return f", and may cost {usd_text(usd_high(way))}, above budget_usd" if over else ""


def _machines(way: Candidate) -> str:
    storage = f"{way.storage_nodes} x {way.storage.machine.name} and " if way.storage else ""
    return f"{storage}{way.compute.count} x {way.compute.machine.name}"


def _refused(search: Search, only: Catalog, prefix: str) -> str:
    """Return why a search among these types alone finds nothing."""
    again = Search(search.job, search.dataset, only, search.prices)
    try:
        again.ranked()
    except InfeasibleJob as refusal:
        rows = [row for row in again.rejections.listed() if row.reason.startswith(prefix)]
        return "; ".join(f"{row.reason.removeprefix(prefix)} ({row.example})" for row in rows) or str(refusal)
    return "it does only with machines that the plan does without"
