"""Runs that stand still: one is planned and has launched nothing yet, one trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import simulated_site, start_until


@pytest.fixture
def planned() -> Iterator[SimulatedSite]:
    """Yield a site whose run is planned, with its execution stopped before it launches."""
    with simulated_site() as site:
        fail = site.invoke

        async def only_plan(name: str, payload: Any) -> Any:
            if name in ("LaunchFleet", "MarkTombstone"):
                raise RuntimeError("not yet")
            return await fail(name, payload)

        site.invoke = only_plan
        start_until(site, "planning")
        yield site


@pytest.fixture
def training() -> Iterator[SimulatedSite]:
    """Yield a site whose run trains, with its agents silenced, so that only the test speaks."""
    with simulated_site() as site:
        start_until(site, "training")
        for machine in site.fleets.machines.values():
            for task in machine.tasks:
                task.cancel()
        site.settle(1)
        yield site
