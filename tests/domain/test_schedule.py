"""Staging is scheduled back from the start of a reservation, and one that cannot hold the job is refused in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.domain import calibration
from headrace.domain.errors import InfeasibleJob
from headrace.domain.instants import to_text
from headrace.domain.plan import OptionPlan
from headrace.domain.planner import plan
from headrace.domain.schedule import SETTLING, Reservation, Schedule, schedule
from tests.domain.small_world import CHEAP, CPU, TB, dataset, job, world

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def option(storage: str = "fleet", hours: float = 2.0) -> OptionPlan:
    here = world({CPU: 1.0, CHEAP: 0.9})
    return plan(
        job(storage=storage, duration_hours=hours, demand={"read_bytes_per_s": 1000}), dataset(TB), *here
    ).chosen


@pytest.fixture(scope="module")
def chosen() -> OptionPlan:
    return option()


def block(starts: datetime, ends: datetime, **more: Any) -> Reservation:
    known = {"reservation_id": "cr-1", "kind": "capacity-block", "state": "scheduled", "zone": "us-east-1b", "count": 4}
    times = {"starts_at": to_text(starts), "ends_at": to_text(ends)}
    return Reservation.model_validate({**known, "instance_type": "cpu.large", **times, **more})


def planned(chosen: OptionPlan, starts: datetime, ends: datetime, **more: Any) -> Schedule:
    return schedule(chosen, block(starts, ends, **more), NOW)


def seconds_before_compute(chosen: OptionPlan) -> float:
    (staging,) = (one.eta_s for one in chosen.phases if one.name == "staging")
    return calibration.LAUNCH_SLOW_S + calibration.STAGING_SLOWDOWN * staging


def test_storage_is_launched_so_that_even_a_slow_staging_is_done_when_the_block_begins(chosen: OptionPlan) -> None:
    found = planned(chosen, NOW + 48 * HOUR, NOW + 72 * HOUR)
    assert found.compute_at == NOW + 48 * HOUR + SETTLING
    assert found.compute_at - found.launch_at == timedelta(seconds=seconds_before_compute(chosen))
    assert found.taken_at == NOW + 71.5 * HOUR
    assert "cr-1 begins at 2026-12-03T00:01:00.000Z; storage is launched" in found.because


def test_a_block_that_has_begun_starts_at_once(chosen: OptionPlan) -> None:
    found = planned(chosen, NOW - HOUR, NOW + 24 * HOUR, state="active")
    assert (found.launch_at, found.compute_at) == (NOW, NOW)


def test_a_block_that_begins_before_staging_could_end_is_staged_for_at_once(chosen: OptionPlan) -> None:
    found = planned(chosen, NOW + timedelta(minutes=1), NOW + 24 * HOUR)
    assert (found.launch_at, found.compute_at) == (NOW, NOW + timedelta(minutes=1) + SETTLING)


def test_without_storage_machines_all_is_launched_when_the_block_begins() -> None:
    found = planned(option(storage="direct"), NOW + 48 * HOUR, NOW + 72 * HOUR)
    assert found.launch_at == found.compute_at == NOW + 48 * HOUR + SETTLING
    assert "nothing is launched before" in found.because


def test_a_block_that_ends_before_the_job_can_is_refused_with_what_fits(chosen: OptionPlan) -> None:
    planned(chosen, NOW + 48 * HOUR, NOW + 51 * HOUR)
    with pytest.raises(InfeasibleJob, match=r"needs 2\.05 h from .*T00:01:00\.000Z on.* fits: duration_hours: 1\.43"):
        planned(chosen, NOW + 48 * HOUR, NOW + 50 * HOUR)
    with pytest.raises(InfeasibleJob, match="fits: nothing in what is left of it"):
        planned(chosen, NOW - 23 * HOUR, NOW + HOUR / 2, state="active")


def test_the_end_of_a_reservation_that_is_no_block_takes_no_machine(chosen: OptionPlan) -> None:
    found = planned(chosen, NOW + 48 * HOUR, NOW + 49 * HOUR, kind="default")
    assert found.taken_at is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"instance_type": "p5.48xlarge"}, "compute.reservation: cr-1 is for p5.48xlarge, the plan asks for cpu.large"),
        ({"count": 0}, "has 0 machines, the plan asks for 1; ask for fewer"),
        ({"state": "cancelled"}, "is cancelled; name one that is active or scheduled"),
        ({"state": "payment-failed"}, "is payment-failed"),
        ({"state": "assessing", "starts_at": None}, "EC2 does not tell when it starts"),
    ],
)
def test_what_cannot_be_used_is_refused(chosen: OptionPlan, more: dict[str, Any], told: str) -> None:
    with pytest.raises(InfeasibleJob, match=told):
        planned(chosen, NOW + 48 * HOUR, NOW + 72 * HOUR, **more)
