"""The same demand on storage services that a run never chooses: EBS on the compute nodes, FSx for Lustre."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.domain.candidates import Candidate
from headrace.domain.catalog import PriceList
from headrace.domain.comparison_ebs import gp3_row, io2_row
from headrace.domain.comparison_fsx import FSX_TIERS, fsx_row
from headrace.domain.comparison_rows import Unpriced
from headrace.domain.plan import Comparison

UNVERIFIED = "recalled_unverified"


def comparisons(candidate: Candidate, prices: PriceList) -> tuple[Comparison, ...]:
    """Return a row for each service whose prices are checked, for the candidate's own compute nodes."""
    return tuple(_rows(candidate, prices))


def left_out(prices: PriceList) -> tuple[str, ...]:
    """Return the services that are not compared, each with the reason."""
    if not prices.services:
        return (f"EBS and FSx for Lustre: no checked price in {prices.region}",)
    return tuple(f"{one.name}: its price is not checked" for one in prices.services if one.status == UNVERIFIED)


def _rows(candidate: Candidate, prices: PriceList) -> Iterator[Comparison]:
    known = {one.name: one.usd for one in prices.services if one.status != UNVERIFIED}
    for row in (gp3_row, io2_row, *(fsx_row(tier) for tier in FSX_TIERS)):
        try:
            yield row(candidate, known)
        except Unpriced:
            continue
