"""A run whose GPUs are a capacity block of the future waits at no cost, is staged in time, and ends with the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from headrace.domain.instants import from_text, to_text
from headrace.domain.schedule import SETTLING, Reservation
from headrace.handlers._files import read_plan
from headrace.local.simulated.site import START, SimulatedSite
from tests.simulated_runs import job, machines_alive, nodes_of, only_run, receipt_of, simulated_site

ID = "cr-0123456789abcdef0"
HOUR = timedelta(hours=1)
RESERVED = {"instance_type": "c7i.large", "capacity": "capacity-block", "reservation": ID}


@contextmanager
def reserved(hours: float, length: float = 24.0, **more: Any) -> Iterator[SimulatedSite]:
    """Yield a cloud with a block that begins so many hours after the start."""
    times = {"starts_at": to_text(START + hours * HOUR), "ends_at": to_text(START + (hours + length) * HOUR)}
    known = {
        "kind": "capacity-block",
        "state": "scheduled",
        "zone": "local-a",
        "count": 4,
        "instance_type": "c7i.large",
    }
    block = Reservation.model_validate({"reservation_id": ID, **known, **times, **more})
    with simulated_site(reservations=[block]) as site:
        yield site


def launched(site: SimulatedSite, role: str) -> list[timedelta]:
    return sorted(from_text(node.launched_at) - START for node in nodes_of(site) if node.role == role)


def test_storage_is_filled_before_the_block_begins_and_compute_comes_with_it() -> None:
    with reserved(hours=48) as site:
        site.run(job(compute=RESERVED, budget_usd=5, duration_hours=0.1))
        receipt = receipt_of(site)
        assert (receipt.status, receipt.reason) == ("SUCCEEDED", None)
        assert [mark.name for mark in only_run(site).phases][2:5] == ["planning", "waiting", "storage"]
        (staging,) = (one.eta_s for one in read_plan(site.cloud, only_run(site)).chosen.phases if one.name == "staging")
        storage, compute = launched(site, "storage"), launched(site, "compute")
        assert 48 * HOUR <= compute[0] < 48 * HOUR + SETTLING + timedelta(minutes=1)
        assert compute[0] - storage[0] < timedelta(seconds=400 + 2 * staging + 60)
        done = next(phase for phase in receipt.phases if phase.name == "staging")
        assert from_text(done.started_at) < START + 48 * HOUR
        assert receipt.usd < 0.2
        assert "begins at 2026-01-03T00:01:00.000Z" in read_plan(site.cloud, only_run(site)).chosen.reasons[-1]
        assert machines_alive(site) == []


def test_the_hours_of_a_run_count_from_its_first_launch_and_end_before_the_block_does() -> None:
    with reserved(hours=48, length=3) as site:
        arn = site.start(job(compute=RESERVED, duration_hours=2, max_hours=100))
        site.settle(20 * 3600)
        row = only_run(site)
        assert (row.phases[-1].name, row.status, row.warned_at) == ("waiting", "RUNNING", None)
        assert row.deadline_at == to_text(START + 50.5 * HOUR)
        site.loop.run_until_complete(site.interpreter.wait(arn))
        site.settle()
        assert receipt_of(site).status == "SUCCEEDED"
        assert only_run(site).warned_at is None


def test_a_run_that_is_stopped_while_it_waits_has_launched_nothing() -> None:
    with reserved(hours=48) as site:
        arn = site.start(job(compute=RESERVED))
        site.settle(3600)
        site.cloud.executions.stop(arn, "stopped by ann")
        site.settle(3600)
        assert receipt_of(site).status == "FAILED"
        assert (nodes_of(site), machines_alive(site)) == ((), [])


def test_a_block_that_has_begun_starts_at_once_without_waiting() -> None:
    with reserved(hours=-1, state="active") as site:
        site.run(job(compute=RESERVED, duration_hours=0.1))
        assert receipt_of(site).status == "SUCCEEDED"
        assert "waiting" not in [mark.name for mark in only_run(site).phases]
        assert launched(site, "storage")[0] < timedelta(minutes=1)


def test_a_block_that_is_too_short_is_refused_before_any_launch() -> None:
    with reserved(hours=48, length=1) as site:
        site.run(job(compute=RESERVED, duration_hours=1))
        assert "InfeasibleJob: compute.reservation: cr-0123456789abcdef0 ends at" in str(receipt_of(site).reason)
        assert nodes_of(site) == ()


def test_machines_that_train_from_their_own_disks_wait_for_the_block_alone() -> None:
    own = {"instance_type": "i4i.large", "capacity": "capacity-block", "reservation": ID}
    with reserved(hours=5, instance_type="i4i.large") as site:
        site.run(job(compute=own, storage="local", storage_nodes=None, duration_hours=0.1))
        assert receipt_of(site).status == "SUCCEEDED"
        assert launched(site, "compute")[0] >= 5 * HOUR + SETTLING
