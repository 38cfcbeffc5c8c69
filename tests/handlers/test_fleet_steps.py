"""The steps of the fleet machine: launches repeat safely, late is not lost, what failed is replaced within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.errors import AccessDenied, CapacityUnavailable, NodeNotReady, QuotaExceeded, RunTombstoned
from headrace.domain.launch import LaunchRequest
from headrace.domain.plan import FleetPlan, Role
from headrace.handlers import check_configuration, check_nodes, launch_fleet, replace_nodes
from headrace.handlers._files import read_plan
from headrace.handlers._launches import are_launches_settled
from headrace.local.simulated.machines import ZONE
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import CommandStatus, LaunchFault, LaunchResult
from tests.simulated_runs import machines_alive, nodes_of, only_run, simulated_site, start_until


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


def planned_fleet(site: SimulatedSite, role: Role) -> FleetPlan:
    fleet = read_plan(site.cloud, only_run(site)).fleet(role)
    assert fleet is not None
    return fleet


def order(site: SimulatedSite, **more: Any) -> dict[str, Any]:
    return {"run_id": only_run(site).run_id, "role": "storage", "attempt": 1, **more}


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


def verdict(site: SimulatedSite) -> str:
    return str(check_nodes.step(order(site), site.cloud)["verdict"])


def test_a_machine_not_listed_yet_is_late_and_not_lost(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    hidden = dict(planned.fleets.machines)
    planned.fleets.machines.clear()
    assert verdict(planned) == "waiting"
    planned.fleets.machines.update(hidden)
    planned.settle(120)
    assert verdict(planned) == "ready"


def test_a_machine_that_never_comes_up_is_replaced_after_its_time(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    planned.fleets.machines.clear()
    planned.settle(SETTINGS.node_boot_timeout_seconds + 1)
    assert verdict(planned) == "replace"
    assert all("not ready" in str(node.failure) for node in nodes_of(planned))


def test_a_machine_that_went_straight_to_terminated_is_replaced(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    planned.fleets.terminate(machines_alive(planned)[:1])
    assert verdict(planned) == "replace"


def test_an_address_that_comes_late_is_kept(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    planned.settle(120)
    for machine in planned.fleets.machines.values():
        machine.node = replace(machine.node, address="")
    assert verdict(planned) == "waiting"
    for machine in planned.fleets.machines.values():
        machine.node = replace(machine.node, address="10.9.9.9")
    assert verdict(planned) == "ready"
    assert {node.address for node in nodes_of(planned)} == {"10.9.9.9"}


def configuration(site: SimulatedSite, status: CommandStatus) -> str:
    site.cloud.runs.insert(only_run(site).run_id, "command", "c-1", {"sent_at": "2026-01-01T00:00:00.000Z"})
    cloud = replace(site.cloud, nodes=AnsweringNodes(status))
    return str(check_configuration.step(order(site, command_id="c-1"), cloud)["verdict"])


class AnsweringNodes:
    """A Nodes port whose commands are always as given."""

    def __init__(self, status: CommandStatus) -> None:
        self._status = status

    def online(self, run_id: str, role: str) -> frozenset[str]:
        raise AssertionError(f"not asked for: {run_id} {role}")

    def send(self, document: str, run_id: str, role: str, parameters: object) -> str:
        raise AssertionError(f"not asked for: {document} {run_id} {role} {parameters}")

    def command_status(self, command_id: str) -> CommandStatus:
        assert command_id == "c-1"
        return self._status


def test_an_empty_answer_is_not_completion(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    assert configuration(planned, CommandStatus(frozenset(), frozenset(), {})) == "waiting"


def test_completion_is_every_machine_of_the_role(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    first, second = machines_alive(planned)
    assert configuration(planned, CommandStatus(frozenset({first}), frozenset({second}), {})) == "waiting"
    assert configuration(planned, CommandStatus(frozenset({first, second}), frozenset(), {})) == "ready"


def test_a_failed_configuration_is_replaced_and_its_output_kept(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    first, second = machines_alive(planned)
    failed = CommandStatus(frozenset({first}), frozenset(), {second: "mkfs.xfs: no such device"})
    assert configuration(planned, failed) == "replace"
    assert any("mkfs.xfs: no such device" in str(node.failure) for node in nodes_of(planned))


def test_replacement_terminates_the_failed_and_counts_attempts_to_a_bound(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    bad = nodes_of(planned)[0]
    planned.cloud.runs.update(bad.run_id, "node", bad.node_id, {"state": "failed", "failure": "no disk"}, {})
    assert replace_nodes.step(order(planned), planned.cloud) == {"attempt": 2}
    launch_fleet.step(order(planned, attempt=2), planned.cloud)
    standing = [node for node in nodes_of(planned) if not node.released_at]
    assert sorted(node.index for node in standing) == [0, 1]
    last = SETTINGS.launch_attempts
    planned.cloud.runs.update(
        standing[0].run_id, "node", standing[0].node_id, {"state": "failed", "failure": "bad"}, {}
    )
    with pytest.raises(NodeNotReady, match=r"3 launches did not give a working storage fleet.*bad"):
        replace_nodes.step(order(planned, attempt=last), planned.cloud)
