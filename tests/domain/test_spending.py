"""What a run has used of its budget and its hours, and how long is left of each."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.instants import to_text
from headrace.domain.run import NodeRow, PhaseMark, RunRow
from headrace.domain.spending import (
    LEASE_SLACK_SECONDS,
    Limit,
    lease_ends_at,
    limits_of,
    seconds_left,
    spent_micro_usd,
    tightest,
)
from tests.domain.rows import NOON, node_row, run_row

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def limit(row: RunRow, hours: float, *nodes: NodeRow, release_seconds: float = 0.0) -> Limit:
    return tightest(limits_of(row, nodes, after(hours), release_seconds))


def test_money_is_what_every_machine_cost_until_now_or_until_its_release() -> None:
    standing = node_row(usd_per_hour=2.0)
    gone = node_row("i-2", usd_per_hour=4.0, released_at=to_text(after(0.5)))
    assert spent_micro_usd((standing, gone), after(1)) == 4_000_000


def test_what_releasing_will_cost_is_spent_already() -> None:
    row = run_row(budget_usd=1.1)
    assert limit(row, 1, node_row(), release_seconds=0).used == pytest.approx(1 / 1.1)
    assert limit(row, 1, node_row(), release_seconds=360).used == pytest.approx(1.0)


def test_a_released_machine_costs_nothing_more_to_release() -> None:
    gone = node_row(released_at=to_text(after(1)))
    assert spent_micro_usd((gone,), after(2), release_seconds=3600) == 1_000_000


def test_the_budget_names_both_amounts_and_the_time_that_is_left() -> None:
    found = limit(run_row(budget_usd=2.0), 1.8, node_row())
    assert (found.error, found.used) == ("BudgetExceeded", 0.9)
    assert found.seconds_left == pytest.approx(720)
    assert "1.80 USD of budget_usd 2.00 USD" in found.because


def test_a_run_without_a_budget_may_spend() -> None:
    assert [one.error for one in limits_of(run_row(), (node_row(),), after(1), 0)] == ["DeadlineExceeded"]


def test_machines_without_a_price_use_up_no_budget() -> None:
    money = limits_of(run_row(budget_usd=1.0), (node_row(usd_per_hour=0.0),), after(1), 60)[-1]
    assert (money.used, money.seconds_left) == (0.0, math.inf)


def test_the_run_may_last_until_its_deadline() -> None:
    row = run_row()
    assert limit(row, 1.5).used == pytest.approx(0.5)
    assert limit(row, 3).used == pytest.approx(1.0)
    assert limit(row, 4).seconds_left == 0
    assert "the run has lasted 4 h of the 3 h" in limit(row, 4).because


def test_training_has_hours_of_its_own_and_only_while_it_lasts() -> None:
    began = PhaseMark(name="training", at=to_text(after(1)))
    training = run_row(max_seconds=3600.0, phases=(PhaseMark(name="admitted", at=NOON), began))
    assert limit(training, 1.95).used == pytest.approx(0.95)
    assert "the training has lasted" in limit(training, 1.95).because
    collecting = training.model_copy(
        update={"phases": (*training.phases, PhaseMark(name="collecting", at=to_text(after(1.9))))}
    )
    assert limit(collecting, 1.95).used == pytest.approx(0.65)


def test_the_time_left_is_that_of_the_limit_that_comes_first() -> None:
    row = run_row(budget_usd=2.0)
    assert seconds_left(limits_of(row, (node_row(),), after(1), 0)) == 3600
    assert seconds_left(limits_of(row, (node_row(usd_per_hour=0.1),), after(1), 0)) == 7200


def test_a_lease_ends_shortly_after_the_first_limit_and_never_after_the_launch_deadline() -> None:
    row = run_row(budget_usd=2.0)
    dear = limits_of(row, (node_row(),), after(1), 0)
    assert lease_ends_at(row, dear, after(1)) == after(2) + timedelta(seconds=LEASE_SLACK_SECONDS)
    cheap = limits_of(row, (node_row(usd_per_hour=0.1),), after(1), 0)
    assert to_text(lease_ends_at(row, cheap, after(1))) == row.deadline_at


@given(hours=st.floats(0, 100), more=st.floats(0, 100), rate=st.floats(0, 200), budget=st.floats(0.01, 10**6))
def test_no_limit_is_ever_given_back(hours: float, more: float, rate: float, budget: float) -> None:
    row, node = run_row(budget_usd=budget), node_row(usd_per_hour=rate)
    earlier = limits_of(row, (node,), after(hours), 60)
    later = limits_of(row, (node,), after(hours + more), 60)
    assert all(one.used <= two.used for one, two in zip(earlier, later, strict=True))
    assert lease_ends_at(row, later, after(hours + more)) <= after(3)
