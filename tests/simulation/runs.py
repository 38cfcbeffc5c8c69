"""Runs one seed to its end and judges it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headrace.local.faults import Faults
from headrace.local.simulated import site as simulated
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.site import SimulatedSite
from headrace.local.simulated.work import Pace
from tests.simulated_runs import prices
from tests.simulation.ablation import ablate, machines_without, sweeping
from tests.simulation.helpless import OUTAGES, helpless_seconds
from tests.simulation.invariants import excess_seconds, violations
from tests.simulation.ledger import Ledger
from tests.simulation.scenarios import Scenario, scenario_of
from tests.simulation.watched import WatchedRuns

FILES = 6
PRICES = prices()
SETTINGS = replace(simulated.SETTINGS, heartbeat_seconds=80, heartbeat_timeout_seconds=240, poll_seconds=25)
"""Fewer polls and heartbeats than a real cloud has, for speed."""
LARGE = replace(SETTINGS, large_above_nodes=0)
"""Treats every fleet as one of a thousand machines."""
PACE = Pace(configure_seconds=30.0, stage_seconds=20.0, train_seconds=280.0, spread=0.3)
LONGEST_SECONDS = 36 * 3600.0
LATER = frozenset({"late", "doubled", "forged"})
"""Kinds whose copies come some time after the fault struck."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed; `faults` are those that struck, `excess_seconds` each machine's life after its run."""

    seed: int
    violations: Sequence[str]
    timeline: Sequence[tuple[float, str, str]]
    faults: Sequence[Fault]
    statuses: Sequence[str]
    excess_seconds: Sequence[float]
    keys: Sequence[str] = ()
    """Every signing key that was given out, to be searched for where none may be."""


def run_seed(seed: int, *, without: frozenset[str] = frozenset(), log: Callable[[str], None] | None = None) -> Outcome:
    """Run the seed; `without` names safety layers that are turned off."""
    return run_scenario(scenario_of(seed), without=without, log=log)


def run_scenario(
    scenario: Scenario,
    *,
    without: frozenset[str] = frozenset(),
    log: Callable[[str], None] | None = None,
    plan: FaultPlan | None = None,
) -> Outcome:
    """Run what a scenario says; a plan of one's own takes the place of the scenario's faults."""
    ledger = Ledger(scenario.planned)
    plan = plan or FaultPlan(scenario.faults)
    site = SimulatedSite(
        scenario.seed,
        PRICES,
        Faults(denied_buckets=frozenset({"closed"})),
        log,
        plan=plan,
        watcher=ledger,
        settings=LARGE if scenario.seed % 4 == 3 else SETTINGS,
        runs=WatchedRuns(ledger),
        pace=PACE,
        page_keys=1 + scenario.seed % 3,
        machines=machines_without(without & {"catch", "retry", "heartbeat", "time_limits"}),
        has_rule="rule" not in without,
        has_lease="lease" not in without,
        sweep_seconds=None if "sweep" in without else simulated.SWEEP_SECONDS,
    )
    ledger.now = site.loop.time
    for number in range(FILES):
        site.objects.put("data", f"set/{number % 4}/{number:04d}.bin", bytes(100 + number))
    ledger.dataset = frozenset(site.objects.keys("data"))
    try:
        ablate(site, without)
        with sweeping(without):
            _live(site, ledger, scenario)
        return _outcome(site, ledger, scenario)
    finally:
        site.close()


def _live(site: SimulatedSite, ledger: Ledger, scenario: Scenario) -> None:
    for number, (given, at_s) in enumerate(zip(scenario.jobs, scenario.starts_s, strict=False)):
        site.settle(at_s - site.loop.time())
        site.start(given, f"run-{number}")
    site.settle(1)
    _settle(site, ledger)
    left_seconds = max(_last_arrival(ledger) - site.loop.time(), site.deliveries.echo_seconds)
    if left_seconds > 0:
        site.settle(left_seconds + 1)
        _settle(site, ledger)
    if _has_leftovers(site, ledger):
        held_seconds = sum(helpless_seconds(one) for one in site.plan.injected if one.kind in OUTAGES)
        site.settle(3 * simulated.SWEEP_SECONDS + held_seconds + 1)


def _has_leftovers(site: SimulatedSite, ledger: Ledger) -> bool:
    """Tell whether a function that was struck left a receipt or keys, which the sweep is to remove."""
    receipts = [key for _, key in ledger.objects if "/receipt-" in key]
    keys = [key for _, key in ledger.objects if "/nodes/" in key]
    too_many = len(receipts) > len(list(site.functions.truth.runs.run_ids())) or bool(keys)
    return bool(site.plan.injected) and too_many


def _last_arrival(ledger: Ledger) -> float:
    """Return when the last event that was put off arrives, in seconds of the simulation."""
    struck = ((at, Fault.parse(what)) for at, actor, what in ledger.timeline if actor == "fault" and " on " not in what)
    return max((at + fault.seconds * max(1, fault.value) for at, fault in struck if fault.kind in LATER), default=0.0)


def _settle(site: SimulatedSite, ledger: Ledger) -> None:
    while site.loop.time() < LONGEST_SECONDS and not _is_over(site, ledger):
        site.settle(60)


def _is_over(site: SimulatedSite, ledger: Ledger) -> bool:
    if len(ledger.began) > len(ledger.closed) or any(one.ended_s is None for one in ledger.machines.values()):
        return False
    rows = (site.functions.truth.runs.read(run_id, "run", "run") for run_id in site.functions.truth.runs.run_ids())
    return all(row is None or row["ended_at"] for row in rows)


def _outcome(site: SimulatedSite, ledger: Ledger, scenario: Scenario) -> Outcome:
    runs = site.functions.truth.runs
    rows = [runs.read(run_id, "run", "run") or {} for run_id in runs.run_ids()]
    return Outcome(
        seed=scenario.seed,
        violations=violations(site, ledger, scenario),
        timeline=ledger.timeline,
        faults=tuple(site.plan.injected),
        statuses=[str(row["status"]) for row in rows],
        excess_seconds=[seconds for row in rows for _, seconds in excess_seconds(ledger, row)],
        keys=ledger.keys,
    )
