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
from tests.simulation.scenarios import scenario_of
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


def is_aimed_at(seed: int, aims: Sequence[str]) -> bool:
    """Tell whether a fault of the seed begins with one of the aims, or there are none."""
    return not aims or any(str(fault).startswith(tuple(aims)) for fault in scenario_of(seed).faults)


def foreign_sources(tree: Path) -> list[str]:
    """Return what would be imported or read from elsewhere than the tree."""
    used = (str(headrace.__file__), str(tests.simulation.__file__), str(packaged("statemachines")))
    return [one for one in used if not Path(one).resolve().is_relative_to(tree.resolve())]


def main(arguments: Sequence[str]) -> int:
    """Print breaches of the seeds from `start` up to `stop`; return 2 when this is not the tree that was meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--tree", type=Path, required=True, help="where everything must be imported from")
    parser.add_argument("--without", default="", help="safety layers to turn off, with commas between")
    parser.add_argument("--aim", default="", help="beginnings of faults, one of which a seed must have to be tried")
    parser.add_argument("--first", action="store_true", help="stop at the first seed that breaks an invariant")
    given = parser.parse_args(arguments)
    if foreign := foreign_sources(given.tree):
        sys.stderr.write(f"not from {given.tree}: {', '.join(foreign)}\n")
        return 2
    signal.signal(signal.SIGALRM, _give_up)
    without = frozenset(filter(None, given.without.split(",")))
    aims = list(filter(None, given.aim.split(",")))
    with parsed_once():
        for seed in (one for one in range(given.start, given.stop) if is_aimed_at(one, aims)):
            verdict = judge(seed, without)
            if verdict.breaches:
                sys.stdout.write(json.dumps(verdict._asdict()) + "\n")
                if given.first:
                    break
            if seed % COLLECT_EVERY == 0:
                gc.collect()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
