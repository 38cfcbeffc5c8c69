"""What the fleet machine asks LaunchFleet for, and what the plan says of it."""

from __future__ import annotations

from typing import Any

from headrace.domain.plan import FleetPlan, Role
from headrace.handlers._files import read_plan
from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import only_run


def planned_fleet(site: SimulatedSite, role: Role) -> FleetPlan:
    fleet = read_plan(site.cloud, only_run(site)).fleet(role)
    assert fleet is not None
    return fleet


def order(site: SimulatedSite, **more: Any) -> dict[str, Any]:
    return {"run_id": only_run(site).run_id, "role": "storage", "attempt": 1, **more}
