"""Measures planning over the whole catalog: `python bench/plan.py --rounds 21`."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job_text import job_from_mapping
from headrace.domain.planner import plan
from headrace.local.prices import LocalPrices

REGION = "us-east-1"
DATASET = DatasetSummary(files=1_438_500, bytes=210_885_000_000_000, largest_bytes=301_000_000, parts=())
UNET3D, RESNET50 = {"workload": "unet3d"}, {"workload": "resnet50"}


@dataclass(frozen=True)
class Case:
    """One job to plan, and the figure it is held to, in ms."""

    name: str
    changes: dict[str, Any]
    limit_ms: float
    dataset: DatasetSummary = DATASET


CASES = (
    Case("411 h100, unet3d, mirrored", {"count": 411, "demand": UNET3D, "resilience": "mirror"}, 50),
    Case("411 h100, unet3d", {"count": 411, "demand": UNET3D}, 50),
    Case(
        "411 h100, huge files",
        {"count": 411, "demand": RESNET50},
        50,
        DATASET.model_copy(update={"files": 60, "bytes": 60 * 10**12, "largest_bytes": 9 * 10**12}),
    ),
    Case("10,000 h100, resnet50", {"count": 10_000, "demand": RESNET50}, 250),
    Case("10,000 h100, unet3d", {"count": 10_000, "demand": UNET3D}, 250),
)


def job_of(case: Case) -> dict[str, Any]:
    """Return the case as a job description."""
    changes = dict(case.changes)
    return {
        "name": "bench",
        "data": {"source": "s3://datasets/bench/"},
        "results": "s3://experiments/bench/",
        "command": ["torchrun", "train.py"],
        "compute": {"accelerator": "h100", "count": changes.pop("count")},
        **changes,
    }


def measure(case: Case, rounds: int) -> str:
    """Plan the case that often and return a line of what it came to."""
    prices, spec = LocalPrices(), job_from_mapping(job_of(case))
    catalog, price_list = prices.catalog(REGION), prices.price_list(REGION)
    taken_ms, outcome = [], ""
    for _ in range(rounds):
        start = time.perf_counter()
        try:
            made = plan(spec, case.dataset, catalog, price_list)
            outcome = ", ".join(f"{fleet.count} x {fleet.instance_type}" for fleet in made.chosen.fleets)
        except InfeasibleJob as refusal:
            outcome = f"refused: {str(refusal)[:60]}..."
        taken_ms.append((time.perf_counter() - start) * 1000)
    middle = median(taken_ms)
    verdict = "within" if middle <= case.limit_ms else "ABOVE"
    times = f"median {middle:6.1f} ms  max {max(taken_ms):6.1f} ms  {verdict} {case.limit_ms:g} ms"
    return f"{case.name:<27} {times}  {outcome}"


def main() -> None:
    """Measure every case in a process of its own, so that the peak is of planning alone, and print a table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        sys.stdout.write(f"{measure(CASES[given.only], given.rounds)}\n")
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        sys.stdout.write(f"{'':<27} peak memory of the process {peak_mb:.0f} MB\n")
        return
    sys.stdout.write(f"planning over the whole catalog of {REGION}, {given.rounds} rounds each\n")
    sys.stdout.flush()
    for number in range(len(CASES)):
        again = [sys.executable, __file__, "--rounds", str(given.rounds), "--only", str(number)]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
