"""Chooses the cheapest feasible way to run a job, out of every type and count, and says why."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain import plan_words
from headrace.domain.amounts import usd_text
from headrace.domain.budget import within_budget
from headrace.domain.candidates import Candidate
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.options import option
from headrace.domain.phases import usd_low
from headrace.domain.plan import Plan
from headrace.domain.search import Search

ALTERNATIVES = 3


def plan(job: JobSpec, dataset: DatasetSummary, catalog: Catalog, prices: PriceList) -> Plan:
    """Return the plan: the same for the same arguments.

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
        chosen=option(chosen, search),
        alternatives=tuple(option(one, search) for one in others),
        rejected=search.rejections.listed(),
        assumptions=plan_words.assumptions(chosen, catalog, prices),
        catalog_date=catalog.dated,
    )


def _refuse_what_is_not_there_yet(job: JobSpec) -> None:
    lazy = [one.name for one in job.data if one.staging == "lazy"]
    if lazy:
        raise InfeasibleJob(
            f"staging 'lazy' of input {', '.join(lazy)} is not available yet; write staging: copy, or leave it out"
        )
    if job.environment.image:
        raise InfeasibleJob(
            "environment.image is not available yet; bring packages with environment.requirements, or wheels in the code"
        )


def _alternatives(fitting: Sequence[Candidate]) -> list[Candidate]:
    """Return the cheapest of every other kind and pair of types that differs from those before it in kind or compute.

    The next storage type of the same pair is one of them, so that a reader sees how near the second choice is.
    """
    chosen, others = fitting[0], list[Candidate]()
    for one in fitting[1:]:
        pairs = {(seen.kind, seen.compute.machine.name) for seen in others}
        if (one.kind, one.compute.machine.name) not in pairs and len(others) < ALTERNATIVES:
            others.append(one)
    return [one for one in others if one is not chosen]


def _reject_dearer(search: Search, shown: Sequence[Candidate]) -> None:
    ids = {id(one) for one in shown}
    for one in search.found:
        if id(one) not in ids:
            fleet = f" with {one.storage_nodes} x {one.storage.machine.name}" if one.storage else ""
            example = f"{one.compute.count} x {one.compute.machine.name}{fleet}: {usd_text(usd_low(one))}"
            search.rejections.add("feasible, but dearer than what is shown", example)
