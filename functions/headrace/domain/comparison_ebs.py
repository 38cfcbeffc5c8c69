"""The data set on EBS volumes of each compute node: a volume is attached to one machine, so each holds all of it."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.domain.amounts import rate_text
from headrace.domain.candidates import Candidate
from headrace.domain.comparison_rows import GIB, Prices, impossible, monthly_usd, priced
from headrace.domain.demand import capacity_bytes
from headrace.domain.plan import Comparison

MIB = 2**20
ATTACHED_MAX = 24
"""Volumes that a Nitro machine takes beside its root volume and network cards (EBS user guide: 28 in all)."""
IO2_TIERS = (("ebs io2 IOPS first 32000", 0, 32_000), ("ebs io2 IOPS 32001-64000", 32_000, 64_000))
IO2_ABOVE = ("ebs io2 IOPS above 64000", 64_000)


class VolumeLimits(NamedTuple):
    """What one volume gives at most (EBS user guide), and the bytes/s that one of its operations may carry."""

    bytes: int
    bytes_per_s: int
    iops: int
    bytes_per_operation: int


GP3 = VolumeLimits(16 * 2**40, 1_000 * MIB, 16_000, 256 * 1024)
IO2 = VolumeLimits(64 * 2**40, 4_000 * MIB, 256_000, 256 * 1024)


class Need(NamedTuple):
    """What each of one machine's equal volumes must give."""

    volumes: int
    gib: int
    bytes_per_s: float
    iops: int


def gp3_row(candidate: Candidate, prices: Prices) -> Comparison:
    """Return the row of general purpose volumes. Raises Unpriced."""
    name, needed = "EBS gp3 on each compute node", _needed(candidate, GP3)
    if isinstance(needed, str):
        return impossible(name, needed)
    each = (
        monthly_usd(prices, "ebs gp3 storage", needed.gib)
        + monthly_usd(prices, "ebs gp3 IOPS above 3000", max(0, needed.iops - 3_000))
        + monthly_usd(prices, "ebs gp3 throughput above 125 MB/s", max(0.0, needed.bytes_per_s / MIB - 125))
    )
    return _row(candidate, name, needed, each)


def io2_row(candidate: Candidate, prices: Prices) -> Comparison:
    """Return the row of provisioned volumes. Raises Unpriced."""
    name, needed = "EBS io2 on each compute node", _needed(candidate, IO2)
    if isinstance(needed, str):
        return impossible(name, needed)
    tiers = sum(monthly_usd(prices, tier, max(0, min(needed.iops, end) - start)) for tier, start, end in IO2_TIERS)
    above, start = IO2_ABOVE
    each = (
        monthly_usd(prices, "ebs io2 storage", needed.gib)
        + tiers
        + monthly_usd(prices, above, max(0, needed.iops - start))
    )
    return _row(candidate, name, needed, each)


def _needed(candidate: Candidate, limits: VolumeLimits) -> Need | str:
    """Return what each volume must give, or why the machine's volumes cannot."""
    need, dataset, machine = candidate.need, candidate.dataset, candidate.compute.machine
    held = capacity_bytes(dataset.bytes, dataset.files, 1)
    operations = math.ceil(need.node_bytes_per_s / max(1, need.total.read_request_bytes))
    if machine.ebs_bytes_per_s < need.node_bytes_per_s:
        offered = f"{rate_text(machine.ebs_bytes_per_s)} of {rate_text(need.node_bytes_per_s)} needed"
        return f"the link of {machine.name} to EBS sustains {offered}"
    if machine.ebs_iops < operations:
        return f"the link of {machine.name} to EBS sustains {machine.ebs_iops:,} of {operations:,} reads/s needed"
    shares = (held / limits.bytes, need.node_bytes_per_s / limits.bytes_per_s, operations / limits.iops)
    volumes = max(1, math.ceil(max(shares)))
    if volumes > ATTACHED_MAX:
        return f"{volumes} volumes are needed and a machine takes {ATTACHED_MAX}"
    rate = need.node_bytes_per_s / volumes
    iops = max(math.ceil(operations / volumes), math.ceil(rate / limits.bytes_per_operation))
    return Need(volumes, math.ceil(held / volumes / GIB), rate, iops)


def _row(candidate: Candidate, name: str, needed: Need, each_usd_per_month: float) -> Comparison:
    count = needed.volumes * candidate.compute.count
    rate = rate_text(needed.bytes_per_s)
    because = (
        f"{count} volumes of {needed.gib:,} GiB, {needed.iops:,} IOPS and {rate} each; filling them, while the "
        "compute nodes bill, is not in the figure"
    )
    return priced(candidate, name, each_usd_per_month * count, 0.0, because)
