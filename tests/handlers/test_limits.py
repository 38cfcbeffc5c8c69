"""Budget and hours at each heartbeat: one warning near a limit, a notice to the job, and the end at the limit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from headrace.domain.instants import from_text, to_text
from headrace.domain.spending import spent_micro_usd
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import (
    ending_of,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

STANDING_USD_PER_SECOND = (2 * 0.172 + 0.089) / 3600
RELEASE_SECONDS = SETTINGS.heartbeat_timeout_seconds + SETTINGS.stop_grace_seconds


class HeardBus:
    """A bus that remembers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, dict[str, Any]]] = []

    def put(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.heard.append((source, detail_type, dict(detail)))


def listen(site: SimulatedSite) -> HeardBus:
    bus = HeardBus()
    site.bus.put = bus.put  # type: ignore[method-assign]
    return bus


def keep_training(site: SimulatedSite) -> None:
    for agent in site.agents.values():
        agent.troubles.hangs = True


def committed_usd(site: SimulatedSite) -> float:
    """Return what the run has spent, with what its release will cost."""
    return spent_micro_usd(nodes_of(site), site.cloud.clock.now(), RELEASE_SECONDS) / 10**6


def allow(site: SimulatedSite, **changes: Any) -> None:
    site.cloud.runs.update(only_run(site).run_id, "run", "run", changes, {})


def warnings(bus: HeardBus) -> list[dict[str, Any]]:
    return [detail for source, kind, detail in bus.heard if (source, kind) == ("headrace.run", "Run Warned")]


def test_the_row_knows_the_limits_of_the_job() -> None:
    with simulated_site() as site:
        site.run(job(budget_usd=50.0, max_hours=3.0))
        assert (only_run(site).budget_usd, only_run(site).max_seconds) == (50.0, 10_800.0)
        assert only_run(site).warned_at is None


def test_near_its_budget_a_run_is_warned_once_and_the_job_is_told() -> None:
    with simulated_site() as site:
        bus = listen(site)
        start_until(site, "training")
        keep_training(site)
        allow(site, budget_usd=committed_usd(site) / 0.95)
        site.settle(60)
        row = only_run(site)
        (warned,) = warnings(bus)
        assert warned["run_id"] == row.run_id
        assert warned["because"] == row.warning
        assert "of budget_usd" in str(row.warning)
        assert row.is_warning_out
        told = {agent._machine.node.role: agent.notices for agent in site.agents.values()}
        assert told["storage"] == []
        (notice,) = told["compute"]
        assert (notice.notice, notice.because, notice.seconds_left) == ("ending", row.warning, warned["seconds_left"])
        assert 0 <= notice.seconds_left < 60


def test_at_its_budget_a_run_ends_with_the_reason_and_has_not_spent_more() -> None:
    with simulated_site(sweep_seconds=None, has_lease=False) as site:
        arn = start_until(site, "training")
        keep_training(site)
        budget_usd = committed_usd(site) + 60 * STANDING_USD_PER_SECOND
        allow(site, budget_usd=budget_usd)
        ending_of(site, arn)
        receipt = receipt_of(site)
        assert "TrainJob: BudgetExceeded: " in str(receipt.reason)
        assert f"of budget_usd {budget_usd:.4f} USD" in str(receipt.reason)
        assert receipt.usd <= budget_usd
        assert machines_alive(site) == []


def test_staging_that_uses_up_the_budget_ends_the_run_before_a_gpu_is_launched() -> None:
    with simulated_site(sweep_seconds=None, has_lease=False) as site:
        arn = start_until(site, "storage")
        site.settle(1)
        for _ in range(60):
            if only_run(site).phases[-1].name == "staging":
                break
            keep_training(site)
            site.settle(1)
        keep_training(site)
        allow(site, budget_usd=committed_usd(site) + 0.0001)
        ending_of(site, arn)
        assert "StageDataset: BudgetExceeded: " in str(receipt_of(site).reason)
        assert {node.role for node in nodes_of(site)} == {"storage"}


def test_training_that_lasts_longer_than_its_hours_ends_with_the_reason() -> None:
    with simulated_site(sweep_seconds=None, has_lease=False) as site:
        arn = start_until(site, "training", job(duration_hours=0.05, max_hours=0.1))
        keep_training(site)
        ending_of(site, arn)
        row, receipt = only_run(site), receipt_of(site)
        assert "TrainJob: DeadlineExceeded: the training has lasted 6" in str(receipt.reason)
        assert " min of the 6 min it is allowed; raise max_hours for more" in str(receipt.reason)
        (training,) = [phase.seconds for phase in receipt.phases if phase.name == "training"]
        assert 360 <= training <= 360 + SETTINGS.heartbeat_seconds
        assert row.warned_at is not None
        began = next(mark.at for mark in row.phases if mark.name == "training")
        assert 324 <= (from_text(row.warned_at) - from_text(began)).total_seconds() <= 324 + SETTINGS.heartbeat_seconds


def test_a_job_that_is_done_at_its_limit_is_done() -> None:
    with simulated_site(sweep_seconds=None, has_lease=False) as site:
        arn = start_until(site, "training")
        site.settle(50)
        allow(site, max_seconds=61.0)
        assert ending_of(site, arn).status == "SUCCEEDED"


def test_a_warning_that_was_cut_short_is_given_again() -> None:
    with simulated_site() as site:
        bus = listen(site)
        start_until(site, "training")
        keep_training(site)
        now = site.cloud.clock.now()
        hours = {"started_at": to_text(now - timedelta(hours=9.2)), "deadline_at": to_text(now + timedelta(hours=0.8))}
        allow(site, **hours, warned_at=to_text(now), warning="it has nearly had its hours")
        site.settle(SETTINGS.heartbeat_timeout_seconds - SETTINGS.heartbeat_seconds)
        assert warnings(bus) == [], "whoever began to warn may still be at it"
        site.settle(2 * SETTINGS.heartbeat_seconds)
        assert len(warnings(bus)) == 1
        assert only_run(site).is_warning_out


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_well_below_its_limits_a_run_hears_nothing(share: float) -> None:
    with simulated_site() as site:
        bus = listen(site)
        start_until(site, "training")
        keep_training(site)
        allow(site, budget_usd=committed_usd(site) / share)
        site.settle(20)
        assert warnings(bus) == []
        assert only_run(site).warned_at is None
