"""The exact search: every feasible way to run a job, over every type and count, cheapest first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.domain.candidates import (
    Candidate,
    checkpoint_fault,
    direct_candidate,
    fleet_candidates,
    local_candidate,
)
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import need_of
from headrace.domain.errors import InfeasibleJob
from headrace.domain.fleets import Rejections, StorageOffer, compute_fleets, storage_offers
from headrace.domain.job import JobSpec
from headrace.domain.losses import usd_expected
from headrace.domain.nearest import nearest
from headrace.domain.plan import Rejection
from headrace.domain.requests import request_bytes
from headrace.domain.transfer import transfer_usd
from headrace.domain.unknown_names import unknown_region

_KIND_ORDER = {"local": 0, "direct": 1, "fleet": 2}


class Search:
    """One search and what it found."""

    def __init__(self, job: JobSpec, dataset: DatasetSummary, catalog: Catalog, prices: PriceList) -> None:
        """Prepare a search. Raises InfeasibleJob for a region without machines, or data without a byte."""
        self.job, self.dataset, self.catalog, self.prices = job, dataset, catalog, prices
        _refuse_nothing(dataset, catalog)
        self.unsuitable = Rejections()
        """Types that no job could use as storage nodes."""
        self.rejections = Rejections()
        self.found: list[Candidate] = []
        self.transfer_usd = transfer_usd(job, dataset, prices)
        self.offers: tuple[StorageOffer, ...] = ()
        if job.storage in ("auto", "fleet"):
            self.offers = storage_offers(catalog, prices, self.unsuitable, request_bytes(job, dataset))

    def ranked(self) -> list[Candidate]:
        """Return every feasible candidate, cheapest first; ties go to fewer parts, fewer machines, then by name.

        Raises InfeasibleJob when there is none, naming the nearest jobs that could run.
        """
        found = self.candidates()
        if not found:
            raise InfeasibleJob(self._nothing_works())
        found.sort(key=_rank)
        return found

    def candidates(self) -> list[Candidate]:
        """Return every feasible candidate, in no order. Raises InfeasibleJob for names that are not known."""
        found = self.found
        for compute in compute_fleets(self.job.compute, self.catalog, self.prices, self.rejections):
            need = replace(
                need_of(self.job, self.dataset, compute.machine, compute.count, self.catalog.workloads),
                transfer_usd=self.transfer_usd,
            )
            fault = checkpoint_fault(need, compute)
            if fault:
                self.rejections.add(f"compute: {fault[0]}", f"{compute.machine.name}{fault[1]}")
                continue
            given = (self.job, self.dataset, need, compute)
            if self.job.storage in ("auto", "fleet"):
                found += fleet_candidates(*given, self.offers, self.rejections.add)
            if self.job.storage in ("auto", "local"):
                found += filter(None, [local_candidate(*given, self.rejections.add)])
            if self.job.storage == "direct":
                found += filter(None, [direct_candidate(*given, self.rejections.add)])
        return found

    def varied(
        self, dataset: DatasetSummary | None = None, catalog: Catalog | None = None, **changes: Any
    ) -> list[Candidate]:
        """Return what would be feasible with other data, other machines, or some fields of the job changed."""
        job = self.job.model_copy(update=changes)
        try:
            return Search(job, dataset or self.dataset, catalog or self.catalog, self.prices).candidates()
        except InfeasibleJob:
            return []

    def all_rejections(self) -> tuple[Rejection, ...]:
        """Return what was left out, of every type and for every reason, most candidates first."""
        rows = (*self.unsuitable.listed(), *self.rejections.listed())
        return tuple(sorted(rows, key=lambda row: (-row.candidates, row.reason)))

    def _nothing_works(self) -> str:
        rows = self.rejections.listed() or self.unsuitable.listed()
        listed = "; ".join(f"{row.reason} ({row.candidates}, such as {row.example})" for row in rows)
        ways = nearest(self)
        tried = f"Try {'; '.join(ways)}" if ways else "Nothing like it can be run there"
        return f"nothing can run the job {self.job.name!r} in {self.catalog.region}: {listed}. {tried}"


def _refuse_nothing(dataset: DatasetSummary, catalog: Catalog) -> None:
    nowhere = unknown_region(catalog)
    if nowhere:
        raise InfeasibleJob(nowhere)
    if not dataset.bytes:
        raise InfeasibleJob(
            f"the data set has {dataset.files:,} files and not one byte, so there is nothing to hold or read; "
            "check data.source"
        )


def _rank(candidate: Candidate) -> tuple[float, int, int, str, str]:
    storage = candidate.storage.machine.name if candidate.storage else ""
    machines = candidate.compute.count + candidate.storage_nodes
    kind, usd = _KIND_ORDER[candidate.kind], round(usd_expected(candidate), 2)
    return usd, kind, machines, candidate.compute.machine.name, storage
