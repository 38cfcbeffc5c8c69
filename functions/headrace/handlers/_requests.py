"""What is asked of the cloud for one fleet of a plan."""

from __future__ import annotations

from headrace.domain.instants import from_text
from headrace.domain.launch import Beside, LaunchRequest
from headrace.domain.plan import FleetPlan, Plan, Role
from headrace.domain.run import RunRow


def launch_request(
    row: RunRow,
    plan: Plan,
    fleet: FleetPlan,
    attempt: int,
    count: int,
    zones: tuple[str, ...] = (),
    last_zones: tuple[str, ...] = (),
) -> LaunchRequest:
    """Return the request for so many machines of the fleet; the same arguments give the same client token."""
    return LaunchRequest(
        run_id=row.run_id,
        role=fleet.role,
        attempt=attempt,
        count=count,
        instance_types=(fleet.instance_type, *fleet.fallback_types),
        market=fleet.market,
        placement=fleet.placement,
        region=plan.region,
        client_token=f"{row.run_id}-{fleet.role}-{attempt}",
        deadline_at=from_text(row.deadline_at),
        reservation=fleet.reservation,
        zones=zones,
        last_zones=last_zones,
        beside=_beside(plan, fleet.role),
    )


def first_requests(row: RunRow, plan: Plan) -> tuple[LaunchRequest, ...]:
    """Return the requests for all fleets of the plan, as they are asked when nothing fails."""
    return tuple(launch_request(row, plan, fleet, 1, fleet.count) for fleet in plan.chosen.fleets)


def _beside(plan: Plan, role: Role) -> Beside | None:
    compute = plan.fleet("compute")
    if role == "compute" or compute is None:
        return None
    return Beside((compute.instance_type, *compute.fallback_types), compute.reservation)
