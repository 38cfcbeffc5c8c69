"""The steps of the fleet machine after a launch: late is not lost, what failed is replaced within bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.domain.errors import NodeNotReady
from headrace.domain.nodeconfig import NodeConfig
from headrace.handlers import check_configuration, check_nodes, configure_nodes, launch_fleet, replace_nodes
from headrace.handlers._rows import change_node
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import CommandStatus
from tests.handlers.orders import order
from tests.simulated_runs import machines_alive, nodes_of, only_run


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


@pytest.mark.parametrize(("devices", "fabric"), [(["mlx5_0", "mlx5_1"], "roce"), (["mlx5_0", None], "tcp")])
def test_what_the_storage_nodes_can_do_decides_the_fabric_of_the_whole_run_once(
    planned: SimulatedSite, devices: list[str | None], fabric: str
) -> None:
    launch_fleet.step(order(planned), planned.cloud)
    for node, device in zip(nodes_of(planned), devices, strict=True):
        change_node(planned.cloud, node, {"rdma_device": device}, {})
    configure_nodes.step(order(planned), planned.cloud)
    assert only_run(planned).fabric == fabric
    for node in nodes_of(planned):
        change_node(planned.cloud, node, {"rdma_device": None if fabric == "roce" else "mlx5_0"}, {})
        configure_nodes.step(order(planned), planned.cloud)
        name = f"{only_run(planned).prefix}nodes/{node.node_id}/config.json"
        config = NodeConfig.model_validate_json(planned.objects.get(SETTINGS.run_bucket, name))
        assert (config.fabric, config.soft_roce) == (fabric, False)
