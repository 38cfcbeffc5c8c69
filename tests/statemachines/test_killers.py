"""Each killer is enough alone: the run's own end, the rule on its status, the sweep, and the machines themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from headrace.domain.instants import from_text
from headrace.domain.spending import LEASE_SLACK_SECONDS
from headrace.local.simulated.lease import LOOK_SECONDS
from headrace.local.simulated.site import SETTINGS, SWEEP_SECONDS, SimulatedSite
from headrace.local.simulated.watcher import Watcher
from tests.simulated_runs import (
    SEED,
    ending_of,
    failing_function,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

NO_KILLER: dict[str, Any] = {"has_rule": False, "sweep_seconds": None, "has_lease": False}
SEEDS = range(SEED, SEED + 10)
FOR_EVER_SECONDS = 3 * 24 * 3600
LEASE_SECONDS = SETTINGS.idle_lease_seconds


class Ends(Watcher):
    """Remembers when the last machine went."""

    def __init__(self) -> None:
        self.site: SimulatedSite | None = None
        self.last: datetime | None = None

    def released(self, node_id: str, why: str) -> None:
        assert self.site is not None, f"{node_id}: {why}"
        self.last = self.site.cloud.clock.now()


@contextmanager
def cloud_with(seed: int = SEED, **killers: Any) -> Iterator[tuple[SimulatedSite, Ends]]:
    """Yield a cloud whose only killers, besides the run itself, are those given."""
    ends = Ends()
    with simulated_site(seed, watcher=ends, **(NO_KILLER | killers)) as site:
        ends.site = site
        yield site, ends


def break_own_decommission(site: SimulatedSite) -> None:
    """Let whatever the run does to end itself fail, as long as its execution runs."""
    invoke = site.invoke

    async def broken(name: str, payload: Any) -> Any:
        own = name in ("MarkTombstone", "TerminateNodes", "ReleaseCompute")
        if own and site.cloud.executions.is_running(only_run(site).execution_arn):
            raise RuntimeError("the run's own end is broken")
        return await invoke(name, payload)

    site.invoke = broken


def fail_training(site: SimulatedSite) -> datetime:
    """Run a job that fails, to the end of its execution; return when that was."""
    site.exit_code = 1
    arn = site.start(job())
    site.loop.run_until_complete(site.interpreter.wait(arn))
    return site.cloud.clock.now()


def seconds_after(ends: Ends, end: datetime) -> float:
    assert ends.last is not None
    return (ends.last - end).total_seconds()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_run_ends_itself(seed: int) -> None:
    with cloud_with(seed) as (site, ends):
        end = fail_training(site)
        assert machines_alive(site) == []
        assert seconds_after(ends, end) <= 0
        assert receipt_of(site).status == "FAILED"


@pytest.mark.parametrize("seed", SEEDS)
def test_r006_with_the_runs_own_end_broken_the_rule_is_enough(seed: int) -> None:
    with cloud_with(seed, has_rule=True) as (site, ends):
        break_own_decommission(site)
        end = fail_training(site)
        site.settle()
        assert machines_alive(site) == []
        assert seconds_after(ends, end) <= 60
        assert receipt_of(site).status == "FAILED"


@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_rule_as_well_the_sweep_is_enough(seed: int) -> None:
    with cloud_with(seed, sweep_seconds=SWEEP_SECONDS) as (site, ends):
        break_own_decommission(site)
        end = fail_training(site)
        site.settle(900)
        assert machines_alive(site) == []
        assert seconds_after(ends, end) <= 3 * SWEEP_SECONDS
        assert receipt_of(site).status == "FAILED"


@pytest.mark.parametrize("seed", SEEDS)
def test_r035_without_any_control_plane_the_machines_end_themselves(seed: int) -> None:
    with cloud_with(seed, has_lease=True) as (site, ends):
        start_until(site, "training")
        site.functions.dead_until = site.loop.time() + FOR_EVER_SECONDS
        dead_since = site.cloud.clock.now()
        site.settle(2 * LEASE_SECONDS)
        assert machines_alive(site) == []
        training_seconds = 60
        assert LEASE_SECONDS / 2 < seconds_after(ends, dead_since) <= training_seconds + LEASE_SECONDS + 300


@pytest.mark.parametrize("seed", SEEDS)
def test_r146_where_termination_is_denied_machines_that_are_heard_are_told_to_go(seed: int) -> None:
    with cloud_with(seed, has_lease=True) as (site, ends):
        arn = start_until(site, "training")
        site.fleets.deny_terminate(FOR_EVER_SECONDS)
        for agent in site.agents.values():
            agent.troubles.exit_code = 1
        site.settle(120)
        tombstone_at = from_text(str(only_run(site).tombstone_at))
        ending_of(site, arn)
        assert machines_alive(site) == []
        assert seconds_after(ends, tombstone_at) <= LEASE_SLACK_SECONDS + LOOK_SECONDS + SETTINGS.heartbeat_seconds


def test_r145_machines_whose_agents_died_end_at_their_deadline_by_themselves() -> None:
    with cloud_with(has_lease=True) as (site, ends):
        start_until(site, "training", job(max_hours=2.0))
        site.functions.dead_until = site.loop.time() + FOR_EVER_SECONDS
        for agent in site.agents.values():
            agent.crash()
        deadline_at = from_text(only_run(site).deadline_at)
        site.settle((deadline_at - site.cloud.clock.now()).total_seconds() - 60)
        assert len(machines_alive(site)) == 3, "nobody else ends them"
        site.settle(120)
        assert machines_alive(site) == []
        assert seconds_after(ends, deadline_at) == pytest.approx(0, abs=1)


def test_a_machine_that_never_gets_an_identity_goes_after_its_lease() -> None:
    with cloud_with(has_lease=True) as (site, _):
        start_until(site, "planning")
        failing_function(site, "CheckNodes", RuntimeError("broken"))
        failing_function(site, "MarkTombstone", RuntimeError("broken"))
        site.settle(30)
        for node in site.fleets.list_nodes():
            site.objects.delete(SETTINGS.run_bucket, f"runs/{node.run_id}/nodes/{node.node_id}/identity.json")
        site.functions.dead_until = site.loop.time() + FOR_EVER_SECONDS
        site.settle(LEASE_SECONDS + 300)
        assert [node.life for node in site.fleets.list_nodes()] == ["terminated", "terminated"]


def test_an_outage_of_the_control_plane_never_kills_a_healthy_job() -> None:
    with cloud_with(has_lease=True) as (site, _):
        start_until(site, "training", job(max_hours=20.0))
        for agent in site.agents.values():
            agent.troubles.hangs = True
        site.functions.dead_until = site.loop.time() + FOR_EVER_SECONDS
        site.settle(3 * 3600)
        assert len(machines_alive(site)) == 3, "neither the one that trains nor those that serve it"
        assert all(agent.activity in ("training", "idle") for agent in site.agents.values())


def test_with_no_killer_at_all_machines_live_for_ever() -> None:
    """What the other tests show is done by the killers, and by nothing else."""
    with cloud_with() as (site, _):
        break_own_decommission(site)
        fail_training(site)
        site.settle(4 * 3600)
        assert len(machines_alive(site)) == len(nodes_of(site)) == 3
