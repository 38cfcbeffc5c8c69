"""One fault at every place of a run: `python -m tests.simulation.single [--all]` prints what each leads to."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.fault_table import TABLE, Row
from headrace.local.simulated.midway import MIDWAY
from tests.simulation.runs import Outcome, run_scenario
from tests.simulation.scenarios import Scenario, good_scenario
from tests.simulation.speed import parsed_once

ABSORBED: Mapping[str, str] = {
    **dict.fromkeys(("sent_twice", "twin", "twice", "doubled", "duplicate_trigger"), "idempotent"),
    **dict.fromkeys(("throttled", "slow"), "repeated or awaited by the SDK"),
    **dict.fromkeys(("late", "lost"), "another event or a poll said the same"),
    **dict.fromkeys(("stopped", "overtaken", "stop", "spot"), "idempotent: all was over"),
    "forged": "refused",
    "skew": "no decision hangs on an agent's clock",
    "hidden": "shown again before it mattered",
    "no_address": "only ids were asked for",
    "paused": "idempotent: nothing came in between",
    "overlapped": "idempotent",
    "dies": "tried again, or nobody waited for it",
    "untagged": "looked at again",
    "slow_to_go": "they were on their way already",
    "empty": "nothing was done yet",
    "gone": "idempotent: it was not there anyway, or only adorns the receipt",
}
"""Kinds that may leave no trace in a run, and why."""
_CONCERNED = {
    "cannot_stage": (1, 2),
    "cannot_save": (3,),
    "exit": (3,),
    "hang": (1, 3),
    "damaged": (3,),
    "half_upload": (3,),
    "full_disk": (1, 3),
}
"""Which machines a trouble of the work itself concerns: 1 and 2 hold the data, 3 trains."""
BESIDES: Sequence[tuple[str, ...]] = (
    ("exit@machine#3=1",),
    ("failed@nodes.command_status#1",),
    ("abort@control#1~150s",),
    ("spot@machine#3=1~40s",),
    ("spot@machine#3=0~290s",),
)
"""Runs that go another way, for the places that a good run never comes to."""


class Cell(NamedTuple):
    """One kind of fault at one place."""

    kind: str
    where: str


class Trial(NamedTuple):
    """One run with one more fault than its base."""

    fault: Fault
    was_injected: bool
    outcome: Outcome
    consequence: str
    """`retried`, `run failed`, `run stopped`, `other path`, `absorbed: ...`, or `none` where one is due."""


class Base(NamedTuple):
    """A run without the fault: how often each place is called, how it ended, and the timeline."""

    scenario: Scenario
    calls: Mapping[str, int]
    statuses: Sequence[str]
    told: Sequence[tuple[float, str, str]]


class CountingPlan(FaultPlan):
    """Counts the calls of every place, planned or not."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        super().__init__(faults)
        self.calls: Counter[str] = Counter()

    def touches(self, _where: str) -> bool:
        return True

    def touches_any(self, _start: str) -> bool:
        return True

    def next(self, where: str) -> Sequence[Fault]:
        self.calls[where] += 1
        return super().next(where)


def base_of(scenario: Scenario) -> Base:
    """Run the scenario as it is."""
    plan = CountingPlan(scenario.faults)
    outcome = run_scenario(scenario, plan=plan)
    assert not outcome.violations, outcome.violations
    return Base(scenario, plan.calls, outcome.statuses, _told(outcome))


def bases() -> Iterator[tuple[Base, frozenset[str]]]:
    """Yield each base and the places to strike in it, each place in the first base that comes to it."""
    seen: set[str] = set()
    for texts in ((), *BESIDES):
        base = base_of(replace(good_scenario(), faults=tuple(map(Fault.parse, texts))))
        yield base, frozenset(base.calls) - seen
        seen |= set(base.calls)


def faults_of(base: Base, places: frozenset[str], *, everywhere: bool) -> Iterator[Fault]:
    """Yield one fault for each kind, place, value and position; `everywhere` takes every call, else first and last."""
    for row in TABLE:
        for where in dict.fromkeys(row.places):
            if where in places:
                values, seconds = _spread(row, everywhere=everywhere)
                for nth in _positions(row, where, base.calls[where], everywhere=everywhere):
                    yield from (Fault(row.kind, where, nth, value, at) for value in values for at in seconds)


def _spread(row: Row, *, everywhere: bool) -> tuple[Sequence[int], Sequence[float]]:
    """Return the values and times to try: of calls in the midst of a function every third does, with one pause."""
    if everywhere or row.kind not in MIDWAY:
        return row.values, row.seconds
    return row.values[::3], row.seconds[-1:]


def _positions(row: Row, where: str, count: int, *, everywhere: bool) -> Sequence[int]:
    if where == "machine":
        return _CONCERNED.get(row.kind, (1, 3))
    return range(1, count + 1) if everywhere else sorted({1, count})


def trial(base: Base, fault: Fault) -> Trial:
    """Run the base with one more fault and tell what it led to."""
    plan = CountingPlan([*base.scenario.faults, fault])
    outcome = run_scenario(base.scenario, plan=plan)
    return Trial(fault, fault in outcome.faults, outcome, _consequence(base, outcome, plan, fault))


def _told(outcome: Outcome) -> list[tuple[float, str, str]]:
    """Return the timeline without the faults themselves."""
    return [one for one in outcome.timeline if one[1] != "fault"]


def _consequence(base: Base, outcome: Outcome, plan: CountingPlan, fault: Fault) -> str:
    if outcome.statuses != base.statuses:
        return f"run {outcome.statuses[0].lower()}" if outcome.statuses else "refused"
    if any(count > base.calls.get(where, 0) for where, count in plan.calls.items() if where.startswith("invoke.")):
        return "retried"
    if _told(outcome) != base.told or dict(plan.calls) != dict(base.calls):
        return "other path"
    return f"absorbed: {ABSORBED[fault.kind]}" if fault.kind in ABSORBED else "none"


def trials(*, everywhere: bool) -> Iterator[Trial]:
    """Run every fault there is, one at a time."""
    with parsed_once():
        for base, places in bases():
            passed: set[tuple[str, str, int]] = set()
            for fault in faults_of(base, places, everywhere=everywhere):
                invocation = (fault.kind, fault.where, fault.nth)
                if invocation not in passed:
                    one = trial(base, fault)
                    if _came_to_its_end(one):
                        passed.add(invocation)
                    else:
                        yield one


def _came_to_its_end(one: Trial) -> bool:
    """Tell whether a function made fewer calls than the fault was to strike after, which is no trial."""
    what = f"{one.fault} on call {one.fault.value}"
    is_beyond = one.fault.kind in MIDWAY and one.fault.value > 1
    return is_beyond and not any(told == what for _, _, told in one.outcome.timeline)


def by_cell(found: Iterable[Trial]) -> dict[Cell, list[Trial]]:
    """Return the trials by kind and place."""
    cells: dict[Cell, list[Trial]] = defaultdict(list)
    for one in found:
        cells[Cell(one.fault.kind, one.fault.where)].append(one)
    return dict(sorted(cells.items()))


def line_of(cell: Cell, found: Sequence[Trial]) -> str:
    """Return how many were injected in a cell, what they led to, and violations."""
    injected = sum(one.was_injected for one in found)
    wrong = sum(bool(one.outcome.violations) for one in found)
    led_to = ", ".join(f"{name} {n}" for name, n in sorted(Counter(one.consequence for one in found).items()))
    return f"{cell.kind:20} {cell.where:28} injected {injected:4}/{len(found):<4} violations {wrong}  {led_to}"


def is_bad(one: Trial) -> bool:
    """Tell whether the fault broke an invariant, did not strike, or led to nothing that anyone could see."""
    return bool(one.outcome.violations) or not one.was_injected or one.consequence == "none"


def main(arguments: list[str]) -> int:
    """Print the table; return 1 when any trial is bad."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.single", description=__doc__)
    parser.add_argument("--all", action="store_true", help="strike every call of a place, not its first and last")
    found = list(trials(everywhere=parser.parse_args(arguments).all))
    cells = by_cell(found)
    bad = [one for one in found if is_bad(one)]
    lines = [line_of(cell, cells[cell]) for cell in cells]
    lines += [f"BAD {one.fault}: {one.consequence} {list(one.outcome.violations)}" for one in bad]
    sys.stdout.write("\n".join(lines) + f"\n{len(cells)} cells, {len(found)} runs, {len(bad)} of them bad\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
