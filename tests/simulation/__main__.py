"""Replays one seed and prints what happened: `python -m tests.simulation SEED [fault ...] [--without layer,layer]`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from headrace.local.simulated.fault_plan import Fault
from tests.simulation.runs import run_scenario
from tests.simulation.scenarios import scenario_of
from tests.simulation.stories import story


def main(arguments: list[str]) -> int:
    """Print the seed's timeline and verdict; return 1 when an invariant broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("faults", nargs="*", type=Fault.parse, help="instead of the seed's own: kind@where#nth=value~s")
    parser.add_argument("--no-faults", action="store_true", help="run the seed's jobs with nothing going wrong")
    parser.add_argument("--without", default="", help="safety layers to turn off, with commas between")
    given = parser.parse_args(arguments)
    scenario = scenario_of(given.seed)
    if given.faults or given.no_faults:
        scenario = replace(scenario, faults=tuple(given.faults))
    outcome = run_scenario(scenario, without=frozenset(filter(None, given.without.split(","))))
    sys.stdout.write(story(outcome))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
