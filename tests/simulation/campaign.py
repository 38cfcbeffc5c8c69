"""Runs many seeds and says what they showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.local.simulated.fault_plan import Fault
from tests.simulation.helpless import HELPLESS
from tests.simulation.runs import Outcome, run_scenario
from tests.simulation.scenarios import scenario_of
from tests.simulation.shrinking import shrunk
from tests.simulation.speed import parsed_once
from tests.simulation.stories import story


@dataclass
class Findings:
    """What a number of seeds showed; `stories` are of the seeds that broke an invariant, made small."""

    seeds: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    excess_seconds: list[float] = field(default_factory=list)
    """With a living control plane: each machine's life after its run was over."""
    stories: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one seed."""
        self.seeds += 1
        self.statuses.update(outcome.statuses)
        self.faults.update(_cell(fault) for fault in outcome.faults)
        if HELPLESS.isdisjoint(fault.kind for fault in outcome.faults):
            self.excess_seconds += outcome.excess_seconds

    def excess_at(self, share: float) -> float:
        """Return the excess life in seconds that this share of machines did not pass."""
        ordered = sorted(self.excess_seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0

    def in_words(self) -> str:
        """Return one paragraph: seeds, violations, and the bound that so many seeds give (rule of three)."""
        bound = 3 / self.seeds if self.seeds else 1.0
        return (
            f"{self.seeds} seeds, {sum(self.faults.values())} faults of {len(self.faults)} kinds and places, "
            f"violations {len(self.stories)}: with 95 % confidence fewer than {bound:.2g} of such runs break a rule; "
            f"ended as {dict(sorted(self.statuses.items()))}; machines outlived their runs by "
            f"{self.excess_at(0.99):.0f} s at p99, {self.excess_at(1.0):.0f} s at most"
        )


def _cell(fault: Fault) -> str:
    return f"{fault.kind}@{fault.where}"


def campaign(seeds: Iterable[int], stories_max: int = 3) -> Findings:
    """Run the seeds; stop early when that many broke an invariant."""
    findings = Findings()
    with parsed_once():
        for seed in seeds:
            scenario = scenario_of(seed)
            outcome = run_scenario(scenario)
            findings.add(outcome)
            if outcome.violations:
                findings.stories.append(story(shrunk(scenario, outcome)))
            if len(findings.stories) >= stories_max:
                break
    return findings
