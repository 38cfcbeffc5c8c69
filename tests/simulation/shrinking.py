"""Finds the fewest faults with which a seed still breaks an invariant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headrace.local.simulated.fault_plan import Fault
from tests.simulation.runs import Outcome, run_scenario
from tests.simulation.scenarios import Scenario


def shrunk(scenario: Scenario, outcome: Outcome, without: frozenset[str] = frozenset()) -> Outcome:
    """Return the outcome of the smallest set of faults that breaks one of the same invariants."""
    names = {one.partition(":")[0] for one in outcome.violations}

    def breaks(faults: Sequence[Fault]) -> bool:
        found = run_scenario(replace(scenario, faults=tuple(faults)), without=without).violations
        return any(one.partition(":")[0] in names for one in found)

    fewest = fewest_that(list(scenario.faults), breaks)
    return run_scenario(replace(scenario, faults=tuple(fewest)), without=without)


def fewest_that(faults: list[Fault], breaks: Callable[[Sequence[Fault]], bool]) -> list[Fault]:
    """Return a subset that still breaks and of which no single fault can be left out (delta debugging, ddmin)."""
    size = max(1, len(faults) // 2)
    while True:
        at = 0
        while at < len(faults):
            fewer = faults[:at] + faults[at + size :]
            if breaks(fewer):
                faults = fewer
            else:
                at += size
        if size == 1:
            return faults
        size //= 2
