"""Leases: renewed while agents are heard, shortened by budget and tombstone, never renewed for a run that is ended."""

from __future__ import annotations

from datetime import timedelta

from headrace.domain.errors import ObjectMissing
from headrace.domain.instants import from_text, to_text
from headrace.domain.nodeconfig import Lease
from headrace.domain.run import NodeRow
from headrace.domain.spending import LEASE_SLACK_SECONDS
from headrace.handlers._lease import RENEWALS_PER_LEASE
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import job, nodes_of, only_run, simulated_site, start_until

PERIOD_SECONDS = SETTINGS.idle_lease_seconds / RENEWALS_PER_LEASE


def lease_of(site: SimulatedSite, node: NodeRow) -> Lease | None:
    try:
        key = f"{only_run(site).prefix}nodes/{node.node_id}/lease.json"
        return Lease.model_validate_json(site.objects.get(SETTINGS.run_bucket, key))
    except ObjectMissing:
        return None


def train_on(site: SimulatedSite) -> tuple[NodeRow, ...]:
    """Start a run whose job goes on; return its machines."""
    start_until(site, "training", job(max_hours=5.0))
    for agent in site.agents.values():
        agent.troubles.hangs = True
    return nodes_of(site)


def test_every_machine_that_is_heard_has_a_lease_until_the_end_of_the_run() -> None:
    with simulated_site() as site:
        for node in train_on(site):
            lease = lease_of(site, node)
            assert lease is not None
            assert lease.deadline_at == only_run(site).deadline_at


def test_a_lease_is_renewed_now_and_then_and_not_at_every_heartbeat() -> None:
    with simulated_site() as site:
        node = train_on(site)[0]
        renewed = set()
        for _ in range(100):
            site.settle(SETTINGS.heartbeat_seconds)
            lease = lease_of(site, node)
            assert lease is not None
            renewed.add(lease.renewed_at)
        lasted_seconds = 100 * SETTINGS.heartbeat_seconds
        assert len(renewed) in (lasted_seconds // PERIOD_SECONDS, lasted_seconds // PERIOD_SECONDS + 1)


def test_a_budget_that_ends_before_the_deadline_ends_the_lease() -> None:
    with simulated_site() as site:
        train_on(site)
        row = only_run(site)
        site.cloud.runs.update(row.run_id, "run", "run", {"budget_usd": 0.2}, {})
        site.settle(PERIOD_SECONDS + SETTINGS.heartbeat_seconds)
        lease = lease_of(site, nodes_of(site)[0])
        assert lease is not None
        left = from_text(lease.deadline_at) - from_text(lease.renewed_at) - timedelta(seconds=LEASE_SLACK_SECONDS)
        assert timedelta(minutes=15) < left < timedelta(minutes=30), "0.2 USD at 0.433 USD/h are 28 minutes in all"


def test_a_machine_that_is_heard_under_a_tombstone_is_told_to_go() -> None:
    with simulated_site(sweep_seconds=None) as site:
        nodes = train_on(site)
        row = only_run(site)
        now = site.cloud.clock.now()
        site.cloud.runs.update(row.run_id, "run", "run", {"tombstone_at": to_text(now)}, {})
        site.cloud.executions.stop(row.execution_arn, "so that nobody else ends it")
        site.fleets.deny_terminate(3600)
        site.settle(2 * SETTINGS.heartbeat_seconds)
        lease = lease_of(site, nodes[0])
        assert lease is not None
        assert from_text(lease.deadline_at) <= now + timedelta(seconds=LEASE_SLACK_SECONDS + 60)


def test_nothing_is_left_of_leases_when_a_run_has_ended() -> None:
    with simulated_site() as site:
        site.run(job())
        assert [lease_of(site, node) for node in nodes_of(site)] == [None, None, None]
