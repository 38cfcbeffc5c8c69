"""Chooses the cheapest feasible way to run a job, out of every type and count, and says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.domain.amounts import usd_text
from headrace.domain.assumptions import assumptions
from headrace.domain.budget import within_budget
from headrace.domain.candidates import Candidate
from headrace.domain.catalog import Catalog, Market, PriceList
from headrace.domain.comparisons import comparisons, left_out
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.losses import usd_expected
from headrace.domain.options import option
from headrace.domain.plan import OptionPlan, Plan
from headrace.domain.region_choices import region_choices
from headrace.domain.search import Search

ALTERNATIVES = 3


def plan(
    job: JobSpec,
    dataset: DatasetSummary,
    catalog: Catalog,
    prices: PriceList,
    elsewhere: Mapping[str, Market] | None = None,
) -> Plan:
    """Return the plan: the same for the same arguments.

    `elsewhere` has the machines and prices of other regions that inputs lie in, for moving the machines there.

    Raises InfeasibleJob, before anything is launched, when nothing feasible fits; the text names what would.
    """
    _refuse_what_is_not_there_yet(job)
    search = Search(job, dataset, catalog, prices)
    fitting = within_budget(search, search.ranked())
    chosen, others = fitting[0], _alternatives(fitting)
    _reject_dearer(search, (chosen, *others))
    return Plan(
        job_name=job.name,
        region=catalog.region,
        demand=chosen.need.total,
        chosen=_with_rank(option(chosen, search), fitting),
        alternatives=tuple(option(one, search) for one in others),
        rejected=search.all_rejections(),
        regions=region_choices(
            chosen, job.other_regions, lambda region: _plan_in(region, job, dataset, elsewhere or {})
        ),
        comparisons=comparisons(chosen, prices),
        not_compared=left_out(prices),
        assumptions=assumptions(chosen, catalog, prices),
        catalog_date=catalog.dated,
    )


def _plan_in(region: str, job: JobSpec, dataset: DatasetSummary, elsewhere: Mapping[str, Market]) -> Plan:
    if region not in elsewhere:
        raise InfeasibleJob(f"the machines and prices of {region} are not at hand")
    data = tuple(one.model_copy(update={"region": one.region or job.region}) for one in job.data)
    moved = job.model_copy(update={"compute": job.compute.model_copy(update={"region": region}), "data": data})
    return plan(moved, dataset, *elsewhere[region])


def _refuse_what_is_not_there_yet(job: JobSpec) -> None:
    lazy = [one.name for one in job.data if one.staging == "lazy"]
    if lazy:
        raise InfeasibleJob(
            f"staging 'lazy' of input {', '.join(lazy)} is not available yet; write staging: copy, or leave it out"
        )
    if job.environment.secrets:
        raise InfeasibleJob(
            "environment.secrets is not available yet, and the command would miss them; let it read its secrets itself"
        )
    if job.environment.image:
        raise InfeasibleJob(
            "environment.image is not available yet; bring packages by environment.requirements, or wheels in the code"
        )


def _alternatives(fitting: Sequence[Candidate]) -> list[Candidate]:
    """Return the next cheapest of the chosen kind and machine, and the cheapest of other kinds and machines."""
    others: dict[tuple[str, str], Candidate] = {}
    for one in fitting[1:]:
        others.setdefault((one.kind, one.compute.machine.name), one)
        if len(others) == ALTERNATIVES:
            break
    return list(others.values())


def _with_rank(chosen: OptionPlan, fitting: Sequence[Candidate]) -> OptionPlan:
    """Return the chosen option with how far the second choice is."""
    if len(fitting) == 1:
        return chosen.model_copy(update={"reasons": (*chosen.reasons, "nothing else that is feasible does it")})
    second = usd_text(usd_expected(fitting[1]) - usd_expected(fitting[0]))
    rank = f"the cheapest of {len(fitting):,} feasible ways; the second costs {second} more"
    return chosen.model_copy(update={"reasons": (*chosen.reasons, rank)})


def _reject_dearer(search: Search, shown: Sequence[Candidate]) -> None:
    ids = {id(one) for one in shown}
    dearer = [one for one in search.found if id(one) not in ids]
    if dearer:
        first = dearer[0]
        fleet = f" with {first.storage_nodes} x {first.storage.machine.name}" if first.storage else ""
        example = f"{first.compute.count} x {first.compute.machine.name}{fleet}: {usd_text(usd_expected(first))}"
        search.rejections.add("feasible, but dearer than what is shown", example, len(dearer))
