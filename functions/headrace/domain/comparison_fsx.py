"""The data set on one FSx for Lustre file system that all compute nodes mount."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from headrace.domain.amounts import rate_text
from headrace.domain.candidates import Candidate
from headrace.domain.comparison_rows import Prices, impossible, monthly_usd, priced
from headrace.domain.demand import capacity_bytes
from headrace.domain.fleets import nic_share
from headrace.domain.plan import Comparison

TIB, GIB_PER_TIB, MB = 2**40, 1024, 10**6
STEP_TIB = 2.4
"""File systems grow in steps of 2.4 TiB; the smallest has half a step (FSx for Lustre user guide)."""
SETUP_S = 900.0
"""Creating one and importing its names takes 15 minutes to 2 hours (anchors.md section 3)."""


class Tier(NamedTuple):
    """One deployment type: the name of its price, and its baseline throughput per TiB."""

    price: str
    bytes_per_s_per_tib: int


FSX_TIERS = (
    Tier("fsx_lustre scratch SSD (200 MB/s/TiB)", 200 * MB),
    Tier("fsx_lustre persistent SSD 125 MB/s/TiB", 125 * MB),
    Tier("fsx_lustre persistent SSD 250 MB/s/TiB", 250 * MB),
    Tier("fsx_lustre persistent SSD 500 MB/s/TiB", 500 * MB),
    Tier("fsx_lustre persistent SSD 1000 MB/s/TiB", 1000 * MB),
)


def fsx_row(tier: Tier) -> Callable[[Candidate, Prices], Comparison]:
    """Return the function that makes the tier's row. It raises Unpriced."""

    def row(candidate: Candidate, prices: Prices) -> Comparison:
        name = f"FSx for Lustre, {tier.price.removeprefix('fsx_lustre ')}"
        need, dataset, machine = candidate.need, candidate.dataset, candidate.compute.machine
        usd_per_tib = monthly_usd(prices, tier.price, GIB_PER_TIB)
        if need.node_bytes_per_s > nic_share(machine):
            return impossible(name, f"the NIC of {machine.name} brings in {rate_text(nic_share(machine))}")
        for_bytes = capacity_bytes(dataset.bytes, dataset.files, 1) / TIB
        for_rate = need.total.read_bytes_per_s / tier.bytes_per_s_per_tib
        tib = _size(max(for_bytes, for_rate))
        bound = "its throughput" if for_rate > for_bytes else "its capacity"
        because = f"{tib:,.1f} TiB, sized by {bound}; 15 min to create it, at least, with only it billing"
        return priced(candidate, name, tib * usd_per_tib, SETUP_S, because)

    return row


def _size(tib: float) -> float:
    if tib <= STEP_TIB / 2:
        return STEP_TIB / 2
    return round(math.ceil(tib / STEP_TIB) * STEP_TIB, 1)
