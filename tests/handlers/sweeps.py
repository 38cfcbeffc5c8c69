"""A simulated cloud in which the sweep happens when a test says so, and no other killer helps it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from headrace.domain.run import RunRow
from headrace.handlers import on_sweep
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import (
    only_run,
    simulated_site,
    start_until,
)

GRACE_SECONDS = SETTINGS.sweep_grace_seconds


def sweep(site: SimulatedSite) -> dict[str, Any]:
    return on_sweep.step({}, site.cloud)


def sweep_twice(site: SimulatedSite) -> dict[str, Any]:
    """Look, wait for the grace, and look again; return what the second pass did."""
    sweep(site)
    site.settle(GRACE_SECONDS)
    return sweep(site)


def machines_of(site: SimulatedSite, run_id: str) -> list[str]:
    return [one.node_id for one in site.fleets.list_nodes(run_id) if one.life in ("pending", "running")]


def observations(site: SimulatedSite) -> list[str]:
    return [str(item["subject"]) for item in site.cloud.runs.items("sweep", "sweep")]


def keep_training(site: SimulatedSite) -> None:
    """Let the job go on for as long as the test lasts."""
    for agent in site.agents.values():
        agent.troubles.hangs = True


def lose_execution(site: SimulatedSite, phase: str = "training") -> RunRow:
    """Start a run and abort its execution, of which nobody is told."""
    arn = start_until(site, phase)
    keep_training(site)
    site.settle(GRACE_SECONDS / 2)
    site.cloud.executions.stop(arn, "lost")
    return only_run(site)


def lone_site(**more: Any) -> AbstractContextManager[SimulatedSite]:
    """Return a simulated cloud whose only killers are the run itself and the sweeps of the test."""
    return simulated_site(sweep_seconds=None, has_rule=False, has_lease=False, **more)
