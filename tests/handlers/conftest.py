"""A run that is planned and has launched nothing yet."""

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
