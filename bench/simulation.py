"""Prints how many simulated runs one core gets through in a second: random faults, every invariant judged."""

from __future__ import annotations

import argparse
import statistics
import time

from tests.simulation import run_seed
from tests.simulation.speed import parsed_once

FIRST_SEED, ROUNDS = 1000, 3


def seeds_per_s(first: int, count: int) -> float:
    """Return the seeds per second of this process's own time."""
    began = time.process_time()
    for seed in range(first, first + count):
        run_seed(seed)
    return count / (time.process_time() - began)


def main() -> None:
    """Measure some rounds of the same seeds after one that fills what is kept between runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=600, help="how many in each round (default: %(default)s)")
    count = parser.parse_args().seeds
    with parsed_once():
        seeds_per_s(FIRST_SEED, min(count, 50))
        rates = [seeds_per_s(FIRST_SEED, count) for _ in range(ROUNDS)]
    print(f"simulation: median {statistics.median(rates):.0f} seeds/s on one core, {ROUNDS} rounds of {count} seeds")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
