"""Field complaints about machines: late, partial, refused, lost, and above all left running (reference/cases.csv)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.domain.instants import from_text
from headrace.domain.launch import LaunchRequest
from headrace.handlers import terminate_nodes
from headrace.local.faults import Faults
from headrace.local.fleets import LocalFleets
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.ports import LaunchFault, LaunchResult, Node
from tests.cases.troubles import after_launch, failing_after_first, failing_first, launched, receipts_of
from tests.simulated_runs import (
    SEED,
    ending_of,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

PLANNED = 3
"""Machines of the small job: two that store, one that trains."""

FUNCTIONS = ["InspectDataset", "PlanLayout", "StageDataset", "TrainJob", "ReleaseCompute", "CollectResults"]
FUNCTIONS += ["LaunchFleet", "CheckNodes", "ConfigureNodes", "CheckConfiguration", "MarkTombstone", "TerminateNodes"]
FUNCTIONS += ["ConfirmTerminated", "ReleaseRest", "ReportRun"]


def test_r002_a_terminate_that_fails_three_times_is_tried_until_it_is_done() -> None:
    with simulated_site() as site:
        site.fleets.terminate = failing_first(3, RuntimeError("RequestLimitExceeded"), site.fleets.terminate)  # type: ignore[method-assign]
        assert site.run(job()).status == "SUCCEEDED"
        assert machines_alive(site) == []
        assert len(receipts_of(site)) == 1


def test_r003_a_machine_that_registers_after_eight_minutes_is_waited_for_and_never_swept() -> None:
    with simulated_site() as site:
        site.nodes.deregister(480)
        assert site.run(job()).status == "SUCCEEDED"
        assert launched(site) == PLANNED


def test_r005_r033_a_machine_lost_without_an_event_ends_the_run_within_the_heartbeat_limit() -> None:
    silent = FaultPlan([Fault.parse(f"lost@machine.{state}#1") for state in ("shutting-down", "terminated")])
    with simulated_site(plan=silent) as site:
        arn = start_until(site, "training")
        lost_at = site.cloud.clock.now()
        compute = next(node for node in nodes_of(site) if node.role == "compute")
        site.fleets.lose(compute.node_id, "reclaimed", says_goodbye=False)
        ending_of(site, arn)
        row = only_run(site)
        assert (row.status, row.ended_at is not None) == ("FAILED", True)
        assert "NodeLost" in str(row.failure)
        limit = timedelta(seconds=2 * site.cloud.settings.heartbeat_timeout_seconds)
        assert from_text(str(row.tombstone_at)) - lost_at < limit


@pytest.mark.parametrize("function", FUNCTIONS)
def test_r006_an_execution_aborted_in_any_state_leaves_no_machine_and_one_report(function: str) -> None:
    with simulated_site() as site:
        invoke = site.invoke

        async def aborting(name: str, payload: Any) -> Any:
            if name == function:
                site.cloud.executions.stop(only_run(site).execution_arn, "aborted by a person")
            return await invoke(name, payload)

        site.invoke = aborting
        site.run(job())
        site.settle(1800)
        assert machines_alive(site) == []
        assert only_run(site).ended_at is not None
        assert len(receipts_of(site)) == 1


def test_r007_whatever_is_raised_after_a_launch_still_leads_to_termination() -> None:
    with simulated_site() as site:
        insert = site.cloud.runs.insert

        def failing(run_id: str, kind: str, name: str, item: Any) -> bool:
            if kind == "node":
                raise ValueError("a tag of the wrong form")
            return insert(run_id, kind, name, item)

        site.cloud.runs.insert = failing  # type: ignore[method-assign]
        assert site.run(job()).status == "FAILED"
        assert launched(site) > 0
        assert machines_alive(site) == []


def test_r008_launches_whose_answer_is_lost_leak_nothing() -> None:
    for seed in range(SEED, SEED + 20):
        with simulated_site(seed) as site:
            site.fleets.launch = failing_after_first(RuntimeError("InternalError"), site.fleets.launch)  # type: ignore[method-assign]
            site.run(job())
            assert machines_alive(site) == []


def test_r011_not_found_is_no_proof_of_death() -> None:
    with simulated_site() as site:
        terminate, left = site.fleets.terminate, [2]

        def unknown_at_first(node_ids: Sequence[str]) -> tuple[str, ...]:
            if left[0]:
                left[0] -= 1
                return ()
            return terminate(node_ids)

        site.fleets.terminate = unknown_at_first  # type: ignore[assignment,method-assign]
        site.run(job())
        assert machines_alive(site) == []


def test_r012_machines_that_vanish_at_launch_fail_the_run_within_bounds_and_with_the_reason() -> None:
    with simulated_site() as site:

        def vanish(_request: LaunchRequest, result: LaunchResult) -> None:
            for node in result.nodes:
                site.fleets.lose(node.node_id, "Client.InsufficientFreeAddressesInSubnet", says_goodbye=False)

        after_launch(site, vanish)
        assert site.run(job()).status == "FAILED"
        assert "before it was ready" in str(receipt_of(site).reason)
        assert launched(site) == 2 * site.cloud.settings.launch_attempts


def test_r014_a_fleet_that_comes_in_part_trains_nothing_and_is_terminated() -> None:
    with simulated_site() as site:
        launch = site.fleets.launch

        def partial(request: LaunchRequest) -> LaunchResult:
            return launch(request, short=1 if request.role == "compute" else 0)

        site.fleets.launch = partial  # type: ignore[method-assign, assignment]
        assert site.run(job(compute={"instance_type": "c7i.large", "count": 3})).status == "FAILED"
        assert "asked for 3 compute machines, 2 came" in str(receipt_of(site).reason)
        assert "training" not in [phase.name for phase in receipt_of(site).phases]
        assert machines_alive(site) == []


def test_r016_a_shortage_of_one_type_takes_the_next_and_of_all_fails_in_bounded_time() -> None:
    with simulated_site(faults=Faults.parse(["capacity:i4i.large"])) as site:
        assert site.run(job()).status == "SUCCEEDED"
    with simulated_site(faults=Faults.parse(["capacity:*"])) as site:
        assert site.run(job()).status == "FAILED"
        assert "CapacityUnavailable" in str(receipt_of(site).reason)
        assert sum(phase.seconds for phase in receipt_of(site).phases) < 600


def test_r020_a_trigger_delivered_twice_launches_one_fleet() -> None:
    with simulated_site() as site:
        given = {**job(), "client_token": "one"}
        first, second = site.run(given, "execution-1"), site.run(given, "execution-2")
        assert (first.status, second.output) == (
            "SUCCEEDED",
            {"run_id": only_run(site).run_id, "status": "ALREADY_STARTED"},
        )
        assert launched(site) == PLANNED


def test_r021_an_unknown_id_among_good_ones_costs_the_good_ones_nothing() -> None:
    with simulated_site() as site:
        start_until(site, "training")
        ghost = nodes_of(site)[0].model_copy(update={"node_id": "i-0123456789abcdef0", "index": 9})
        site.cloud.runs.insert(ghost.run_id, "node", ghost.node_id, ghost.model_dump(mode="json"))
        assert terminate_nodes.step({"run_id": ghost.run_id}, site.cloud) == {"asked": PLANNED + 1}
        site.settle(60)
        assert machines_alive(site) == []


class StillDriver:
    """Nodes that do nothing but exist until they are stopped; it counts how often each is."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def folder(self, run_id: str, node_id: str) -> None:
        """Return no folder: nodes share none."""

    def start(self, node: Node, request: LaunchRequest) -> None:
        """Start nothing."""

    def stop(self, run_id: str, node_id: str) -> None:  # noqa: ARG002 - a port
        self.stopped.append(node_id)

    def present(self, expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return frozenset(one for one in expected if one[1] not in self.stopped)


def test_r023_every_one_of_1100_machines_is_seen_and_terminated() -> None:
    with simulated_site() as site:
        run_id, driver = "big-run", StillDriver()
        fleets = LocalFleets(None, driver, site.cloud.clock, site._source, Faults())
        request = LaunchRequest(
            run_id, "storage", 1, 1100, ("i4i.large",), "on-demand", "us-east-1", "t", site.cloud.clock.now()
        )
        fleets.launch(request)
        cloud = replace(site.cloud, fleets=fleets)
        assert terminate_nodes.step({"run_id": run_id}, cloud) == {"asked": 1100}
        assert len(set(driver.stopped)) == len(driver.stopped) == 1100
        assert {node.life for node in fleets.list_nodes(run_id)} == {"terminated"}
        fleets.close()


def test_r025_r026_machines_that_are_not_listed_for_a_minute_are_late_and_not_lost() -> None:
    with simulated_site() as site:
        after_launch(site, lambda _request, result: site.fleets.hide([one.node_id for one in result.nodes], 60))
        assert site.run(job()).status == "SUCCEEDED"
        assert launched(site) == PLANNED


def test_r028_machines_without_an_address_for_a_minute_are_not_counted_as_failed() -> None:
    with simulated_site() as site:
        after_launch(site, lambda *_: site.fleets.blank_addresses(120))
        assert site.run(job()).status == "SUCCEEDED"
        assert launched(site) == PLANNED


@pytest.mark.parametrize("role", ["storage", "compute"])
def test_r031_r032_a_quota_ends_the_run_at_the_first_attempt_and_is_named(role: str) -> None:
    with simulated_site() as site:
        launch, asked = site.fleets.launch, list[str]()

        def limited(request: LaunchRequest) -> LaunchResult:
            asked.append(request.role)
            if request.role != role:
                return launch(request)
            fault = LaunchFault(request.instance_types[0], "zone-a", "quota", "VcpuLimitExceeded: L-1216C47A")
            return LaunchResult((), (fault,))

        site.fleets.launch = limited  # type: ignore[method-assign, assignment]
        assert site.run(job()).status == "FAILED"
        assert "QuotaExceeded" in str(receipt_of(site).reason)
        assert "L-1216C47A" in str(receipt_of(site).reason)
        assert asked.count(role) == 1
        assert machines_alive(site) == []


def test_r034_one_lost_machine_of_three_that_train_ends_the_run() -> None:
    with simulated_site() as site:
        arn = start_until(site, "training", job(compute={"instance_type": "c7i.large", "count": 3}))
        last = max((node for node in nodes_of(site) if node.role == "compute"), key=lambda node: node.index)
        site.fleets.lose(last.node_id, "reclaimed", says_goodbye=False)
        assert ending_of(site, arn).status == "FAILED"
        assert machines_alive(site) == []


def test_r037_boots_that_hang_are_given_up_after_a_bounded_number_of_launches() -> None:
    with simulated_site() as site:

        def hang(_request: LaunchRequest, result: LaunchResult) -> None:
            for node in result.nodes:
                site.fleets.machines[node.node_id].boots = False

        after_launch(site, hang)
        assert site.run(job()).status == "FAILED"
        assert "NodeNotReady" in str(receipt_of(site).reason)
        assert launched(site) == 2 * site.cloud.settings.launch_attempts
        assert machines_alive(site) == []


def test_r110_the_end_of_job_1_leaves_job_10_alone() -> None:
    with simulated_site() as site:
        start_until(site, "training")
        other = replace(next(iter(site.fleets.machines.values())).node, run_id=f"{only_run(site).run_id}0")
        machine = next(iter(site.fleets.machines.values()))
        site.fleets.machines["i-neighbour"] = replace(machine, node=replace(other, node_id="i-neighbour"), tasks=[])
        terminate_nodes.step({"run_id": only_run(site).run_id}, site.cloud)
        site.settle(60)
        assert machines_alive(site) == ["i-neighbour"]
