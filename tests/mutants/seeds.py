"""Runs seeds in the tree that it is started in, and prints each that breaks an invariant as a line of JSON."""

from __future__ import annotations

import argparse
import gc
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import headrace
import tests.simulation
from headrace.local.packaged import packaged
from tests.simulation import run_seed
from tests.simulation.speed import parsed_once

SEED_SECONDS = 120
"""Of real time, for one run; a good one takes a tenth of a second at most."""
COLLECT_EVERY = 200


class Stuck(KeyboardInterrupt):
    """A run goes on and on; an interrupt is what neither handlers nor the event loop catch."""


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise Stuck


class Verdict(NamedTuple):
    """What the invariants say of a seed, and how long at most a machine outlived its run."""

    seed: int
    breaches: Sequence[str]
    excess_seconds: float = 0.0


def judge(seed: int, without: frozenset[str]) -> Verdict:
    """Run the seed; a run that the simulation itself cannot stand is a breach too."""
    signal.alarm(SEED_SECONDS)
    try:
        outcome = run_seed(seed, without=without)
    except Stuck:
        return Verdict(seed, [f"broke: the run did not end in {SEED_SECONDS} s of real time"])
    except Exception as error:
        return Verdict(seed, [f"broke: {type(error).__name__}: {error}"])
    finally:
        signal.alarm(0)
    return Verdict(seed, list(outcome.violations), max(outcome.excess_seconds, default=0.0))


def foreign_sources(tree: Path) -> list[str]:
    """Return what would be imported or read from elsewhere than the tree."""
    used = (str(headrace.__file__), str(tests.simulation.__file__), str(packaged("statemachines")))
    return [one for one in used if not Path(one).resolve().is_relative_to(tree.resolve())]


def main(arguments: Sequence[str]) -> int:
    """Print the breaches of each seed; return 2 when this is not the tree that was meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="*")
    parser.add_argument("--tree", type=Path, required=True, help="where everything must be imported from")
    parser.add_argument("--without", default="", help="safety layers to turn off, with commas between")
    given = parser.parse_args(arguments)
    if foreign := foreign_sources(given.tree):
        sys.stderr.write(f"not from {given.tree}: {', '.join(foreign)}\n")
        return 2
    signal.signal(signal.SIGALRM, _give_up)
    without = frozenset(filter(None, given.without.split(",")))
    with parsed_once():
        for number, seed in enumerate(given.seeds):
            verdict = judge(seed, without)
            if verdict.breaches:
                sys.stdout.write(json.dumps(verdict._asdict()) + "\n")
            if number % COLLECT_EVERY == 0:
                gc.collect()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
