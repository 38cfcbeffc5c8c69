"""LaunchFleet: launches repeat safely, none happens under a tombstone, a partial fleet is told by its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.errors import AccessDenied, CapacityUnavailable, QuotaExceeded, RunTombstoned
from headrace.domain.launch import LaunchRequest
from headrace.domain.plan import FleetPlan
from headrace.handlers import launch_fleet
from headrace.handlers._files import read_plan
from headrace.handlers._launches import are_launches_settled
from headrace.local.simulated.machines import ZONE
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import LaunchFault, LaunchResult
from tests.handlers.orders import order, planned_fleet
from tests.simulated_runs import machines_alive, nodes_of, only_run


def test_a_launch_gives_every_machine_a_place_and_a_key(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    nodes = nodes_of(planned)
    assert sorted(node.index for node in nodes) == [0, 1]
    for node in nodes:
        name = f"{only_run(planned).prefix}nodes/{node.node_id}/identity.json"
        assert planned.objects.get(SETTINGS.run_bucket, name)


def test_a_repeated_launch_launches_nothing_and_keeps_the_keys(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    before = (nodes_of(planned), [planned.objects.get(*key) for key in identities(planned)])
    launch_fleet.step(order(planned), planned.cloud)
    assert (nodes_of(planned), [planned.objects.get(*key) for key in identities(planned)]) == before
    assert len(machines_alive(planned)) == 2


def identities(site: SimulatedSite) -> list[tuple[str, str]]:
    return [
        (SETTINGS.run_bucket, f"{only_run(site).prefix}nodes/{node.node_id}/identity.json") for node in nodes_of(site)
    ]


def test_a_crash_between_launch_and_record_is_healed_by_the_repeat(planned: SimulatedSite) -> None:
    request_seen: list[LaunchRequest] = []
    launch = planned.fleets.launch

    def crashing(request: LaunchRequest) -> LaunchResult:
        request_seen.append(request)
        launch(request)
        raise RuntimeError("the function was killed after the launch")

    planned.fleets.launch = crashing  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="killed"):
        launch_fleet.step(order(planned), planned.cloud)
    planned.fleets.launch = launch  # type: ignore[method-assign]
    launch_fleet.step(order(planned), planned.cloud)
    assert sorted(node.node_id for node in nodes_of(planned)) == sorted(machines_alive(planned))
    assert len(machines_alive(planned)) == request_seen[0].count == 2


def test_nothing_is_launched_under_a_tombstone(planned: SimulatedSite) -> None:
    planned.cloud.runs.update(only_run(planned).run_id, "run", "run", {"tombstone_at": "2026-01-01T00:00:00Z"}, {})
    with pytest.raises(RunTombstoned):
        launch_fleet.step(order(planned), planned.cloud)
    assert planned.fleets.list_nodes() == ()


def test_a_launch_that_is_noted_after_the_tombstone_is_not_asked_for(planned: SimulatedSite) -> None:
    run_id, insert = only_run(planned).run_id, planned.cloud.runs.insert

    def ended_meanwhile(run: str, kind: str, name: str, item: dict[str, Any]) -> bool:
        if kind == "launch":
            planned.cloud.runs.update(run_id, "run", "run", {"tombstone_at": "2026-01-01T00:00:00Z"}, {})
        return insert(run, kind, name, item)

    planned.cloud.runs.insert = ended_meanwhile  # type: ignore[method-assign, assignment]
    with pytest.raises(RunTombstoned):
        launch_fleet.step(order(planned), planned.cloud)
    assert planned.fleets.list_nodes() == ()
    assert are_launches_settled(planned.cloud, run_id)


def requests_of(site: SimulatedSite, *orders: dict[str, Any]) -> list[LaunchRequest]:
    """Carry out the orders and return what was asked of the cloud."""
    seen: list[LaunchRequest] = []
    launch = site.fleets.launch

    def noting(request: LaunchRequest) -> LaunchResult:
        seen.append(request)
        return launch(request)

    site.fleets.launch = noting  # type: ignore[method-assign, assignment]
    for one in orders:
        launch_fleet.step(one, site.cloud)
    return seen


def test_storage_is_launched_beside_what_the_compute_fleet_will_need(planned: SimulatedSite) -> None:
    first, again = requests_of(planned, order(planned), order(planned))
    assert first.beside is not None
    compute = planned_fleet(planned, "compute")
    assert first.beside.instance_types == (compute.instance_type, *compute.fallback_types)
    assert first.zones == ()
    assert again == first


def test_compute_is_launched_where_the_storage_stands(planned: SimulatedSite) -> None:
    _, compute = requests_of(planned, order(planned), order(planned, role="compute"))
    assert (compute.zones, compute.beside) == ((ZONE,), None)


def test_a_replacement_is_launched_where_the_others_stand(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    lost = nodes_of(planned)[0]
    released = {"state": "released", "released_at": "2026-01-01T00:10:00.000Z"}
    planned.cloud.runs.update(lost.run_id, "node", lost.node_id, released, {})
    (replacement,) = requests_of(planned, order(planned, attempt=2))
    assert (replacement.zones, replacement.count) == ((ZONE,), 1)


def test_machines_without_their_placement_group_are_a_remark_once(planned: SimulatedSite) -> None:
    launch = planned.fleets.launch
    full = LaunchFault("i4i.large", ZONE, "capacity", "InsufficientInstanceCapacity")

    def apart(request: LaunchRequest) -> LaunchResult:
        came = launch(replace(request, placement="one zone"))
        return replace(came, faults=(full,))

    planned.fleets.launch = apart  # type: ignore[method-assign, assignment]
    plan = read_plan(planned.cloud, only_run(planned))
    fleets = tuple(replace_placement(one) for one in plan.chosen.fleets)
    changed = plan.model_copy(update={"chosen": plan.chosen.model_copy(update={"fleets": fleets})})
    key = f"{only_run(planned).prefix}plan.json"
    planned.objects.put(SETTINGS.run_bucket, key, changed.model_dump_json().encode())
    for _ in range(2):
        launch_fleet.step(order(planned), planned.cloud)
    assert only_run(planned).remarks == (
        "storage launch 1: 2 machines came without a cluster placement group (zone-a: InsufficientInstanceCapacity)",
    )


def replace_placement(fleet: FleetPlan) -> FleetPlan:
    return fleet.model_copy(update={"placement": "cluster"})


@pytest.mark.parametrize(
    ("meaning", "error"), [("capacity", CapacityUnavailable), ("quota", QuotaExceeded), ("denied", AccessDenied)]
)
def test_a_partial_fleet_is_told_by_its_meaning(planned: SimulatedSite, meaning: Any, error: type[Exception]) -> None:
    launch = planned.fleets.launch

    def partial(request: LaunchRequest) -> LaunchResult:
        came = launch(replace(request, count=1))
        return LaunchResult(came.nodes, (LaunchFault("i4i.large", ZONE, meaning, "VcpuLimitExceeded: 32"),))

    planned.fleets.launch = partial  # type: ignore[method-assign, assignment]
    last = SETTINGS.launch_attempts if meaning == "capacity" else 1
    with pytest.raises(error, match=r"asked for 2 storage machines, 1 came; tried i4i.large in zone-a: VcpuLimit"):
        launch_fleet.step(order(planned, attempt=last), planned.cloud)
    assert len(nodes_of(planned)) == 1, "what did come is known, so that it can be released"
