"""What the sweep thinks of a machine or a run, and that it acts on two looks only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.instants import to_text
from headrace.domain.spending import Limit
from headrace.domain.sweep import (
    STUCK_SECONDS,
    Machine,
    Opinion,
    Rules,
    RunFacts,
    Suspicion,
    decide,
    judge_machine,
    judge_run,
)
from tests.domain.rows import run_row

NOW = datetime(2026, 1, 1, 13, tzinfo=UTC)
RULES = Rules(grace_seconds=120, boot_grace_seconds=60)
OVER = Limit("BudgetExceeded", 1.2, 0.0, "12 of 10 USD are spent")


def ago(seconds: float) -> str:
    return to_text(NOW - timedelta(seconds=seconds))


def facts(
    *,
    is_driven: bool = True,
    is_decommissioning: bool = False,
    exceeded: Limit | None = None,
    is_empty: bool = False,
    **row: Any,
) -> RunFacts:
    return RunFacts(run_row(**row), is_driven, is_decommissioning, exceeded, is_empty)


def machine(age_seconds: float = 3600, *, is_terminated: bool = False) -> Machine:
    return Machine("i-1", "small-1", is_terminated, NOW - timedelta(seconds=age_seconds))


def fate(run: RunFacts | None, age_seconds: float = 3600) -> tuple[str, str]:
    opinion = judge_machine(machine(age_seconds), run, NOW, RULES)
    assert opinion.because, "every opinion has a reason"
    return opinion.action, opinion.finding


def verdict(run: RunFacts) -> tuple[str, str]:
    opinion = judge_run(run, NOW, RULES)
    assert opinion.because, "every opinion has a reason"
    return opinion.action, opinion.finding


LIVE = facts()
ENDED = facts(is_driven=False, ended_at=ago(600), is_empty=True)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (LIVE, ("leave", "live")),
        (None, ("terminate", "ownerless")),
        (ENDED, ("terminate", "run-ended")),
        (facts(tombstone_at=ago(300)), ("leave", "decommissioning")),
        (facts(tombstone_at=ago(300), is_driven=False, is_decommissioning=True), ("leave", "decommissioning")),
        (facts(tombstone_at=ago(300), is_driven=False), ("terminate", "tombstoned")),
        (facts(tombstone_at=ago(STUCK_SECONDS + 1), is_decommissioning=True), ("terminate", "stuck")),
        (facts(is_driven=False), ("leave", "run-undriven")),
        (facts(exceeded=OVER), ("leave", "live")),
    ],
)
def test_a_machine_is_judged_by_its_run(run: RunFacts | None, expected: tuple[str, str]) -> None:
    assert fate(run) == expected


@pytest.mark.parametrize("run", [None, ENDED, facts(is_driven=False, tombstone_at=ago(999))])
def test_r003_a_young_machine_is_left_whatever_its_run(run: RunFacts | None) -> None:
    assert fate(run, age_seconds=59) == ("leave", "young")
    assert fate(run, age_seconds=60)[0] == "terminate"


def test_a_terminated_machine_is_done_with() -> None:
    assert judge_machine(machine(is_terminated=True), None, NOW, RULES).action == "leave"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (LIVE, ("leave", "live")),
        (facts(exceeded=OVER), ("stop", "over-limit")),
        (facts(is_driven=False), ("decommission", "undriven")),
        (facts(is_driven=False, tombstone_at=ago(5)), ("decommission", "undriven")),
        (facts(is_driven=False, is_decommissioning=True), ("leave", "decommissioning")),
        (facts(tombstone_at=ago(5), exceeded=OVER), ("leave", "decommissioning")),
        (ENDED, ("clean", "ended")),
        (facts(ended_at=ago(600), is_empty=False), ("leave", "not-empty")),
        (facts(ended_at=ago(60), is_empty=True), ("leave", "just-ended")),
        (facts(ended_at=ago(600), is_empty=True, swept_at=ago(5)), ("leave", "swept")),
    ],
)
def test_a_run_is_judged_by_its_row_and_its_executions(run: RunFacts, expected: tuple[str, str]) -> None:
    assert verdict(run) == expected


def test_what_is_stopped_for_a_limit_is_told_which() -> None:
    assert judge_run(facts(exceeded=OVER), NOW, RULES).because == "BudgetExceeded: 12 of 10 USD are spent"


SUSPECT = Opinion("node/i-1", "terminate", "ownerless", "no run is called 'x'")


def seen(seconds_ago: float, finding: str = "ownerless") -> dict[str, Suspicion]:
    return {"node/i-1": Suspicion(finding, NOW - timedelta(seconds=seconds_ago))}


def test_r001_the_first_look_only_remembers() -> None:
    assert decide([SUSPECT], {}, NOW, 120) == ((), (SUSPECT,), ())


def test_a_second_look_too_soon_only_waits() -> None:
    assert decide([SUSPECT], seen(119), NOW, 120) == ((), (SUSPECT,), ())


def test_r002_a_look_after_the_grace_acts_and_is_not_forgotten_so_the_next_acts_again() -> None:
    assert decide([SUSPECT], seen(120), NOW, 120) == ((SUSPECT,), (), ())


def test_a_suspicion_for_another_reason_begins_anew() -> None:
    assert decide([SUSPECT], seen(500, "run-ended"), NOW, 120) == ((), (SUSPECT,), ("node/i-1",))


def test_what_is_no_longer_suspect_or_no_longer_there_is_forgotten() -> None:
    well = Opinion("node/i-1", "leave", "live", "run small-1 is live")
    assert decide([well], seen(500), NOW, 120) == ((), (), ("node/i-1",))
    assert decide([], seen(500), NOW, 120) == ((), (), ("node/i-1",))


def test_what_an_ended_run_left_is_removed_at_the_first_look() -> None:
    left = Opinion("run/small-1", "clean", "ended", "it ended")
    assert decide([left], {}, NOW, 120) == ((left,), (), ())


@given(
    run=st.builds(
        facts,
        is_decommissioning=st.booleans(),
        exceeded=st.sampled_from([None, OVER]),
        swept_at=st.sampled_from([None, ago(5)]),
    ),
    age_seconds=st.floats(0, 10**6),
)
def test_no_machine_of_a_live_run_is_ever_touched(run: RunFacts, age_seconds: float) -> None:
    assert fate(run, age_seconds)[0] == "leave"
