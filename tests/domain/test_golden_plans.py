"""Whole plans as a reader gets them, kept as files so that a change of any choice or word shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.job_text import parse_job
from headrace.domain.plan import Plan
from headrace.domain.planner import plan

HEAD = """
name: {name}
data: {{source: s3://datasets/{name}/}}
results: s3://experiments/{name}/
command: [torchrun, train.py]
"""
JOBS: dict[str, tuple[str, tuple[int, int, int]]] = {
    "digits": ("compute: {instance_type: c7i.large}\nstorage: fleet\nstorage_nodes: 2", (1_797, 230_016, 128)),
    "unet3d-8-h100": (
        "compute: {accelerator: h100, count: 8}\ndemand: {workload: unet3d}\nduration_hours: 6",
        (10_000, 1_466_006_280_000, 301_000_000),
    ),
    "largest-public-run": (
        "compute: {accelerator: h100, count: 411}\ndemand: {read_bytes_per_s: 2753000000}\n"
        "storage: fleet\nresilience: mirror",
        (1_438_500, 210_885_000_000_000, 301_000_000),
    ),
    "own-disks-are-enough": (
        "compute: {instance_type: p4d.24xlarge}\nduration_hours: 12",
        (60_000, 150 * 10**9, 5 * 10**6),
    ),
    "straight-from-s3": (
        "compute: {instance_type: g6.12xlarge, count: 2}\nstorage: direct\n"
        "demand: {samples_per_s: 40, sample_bytes: 8000000}",
        (50_000, 400 * 10**9, 8 * 10**6),
    ),
    "no-accelerator": (
        "compute: {instance_type: c7i.4xlarge, count: 4}\ndemand: {read_bytes_per_s: 300000000}\n"
        "budget_usd: 80\nduration_hours: 8\nfabric: roce",
        (12, 15 * 10**12, 9 * 10**12),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_plan_of_a_job_is_as_kept(
    name: str, catalog: Catalog, prices: PriceList, golden: Callable[[str, str], None]
) -> None:
    text, (files, total, largest) = JOBS[name]
    spec = parse_job(HEAD.format(name=name) + text)
    made = plan(spec, DatasetSummary(files=files, bytes=total, largest_bytes=largest, parts=()), catalog, prices)
    golden(f"plans/{name}.json", written(made))


def written(made: Plan) -> str:
    """Return the plan as JSON with the first and last of its many equal volumes."""
    readable = made.model_dump(mode="json")
    for option in (readable["chosen"], *readable["alternatives"]):
        option["volumes"] = abridged(option["volumes"])
    return json.dumps(readable, indent=2) + "\n"


def abridged(volumes: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = {kind: [one for one in volumes if one["kind"] == kind] for kind in ("dataset", "scratch")}
    return {kind: {"count": len(v), "first": v[0], "last": v[-1]} for kind, v in kinds.items() if v}
