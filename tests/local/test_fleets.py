"""The local fleets answer as EC2 does: tokens, shortages, partial fleets, and death only when nothing runs any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.domain.launch import LaunchRequest
from headrace.local.faults import Faults
from headrace.local.fleets import ClientTokenReused, LocalFleets
from headrace.local.marker import kill_marked, marked_processes
from headrace.ports import Node
from tests.local.agents import DOUBLE_FORKING, STUBBORN, launch_request, process_nodes, seeded
from tests.waiting import wait_until

RUN = f"fleet-{os.getpid()}"


@dataclass
class StandingClock:
    """A clock that a test moves."""

    instant: datetime = datetime(2026, 11, 30, 8, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant


@dataclass
class Recorded:
    """A driver that only remembers."""

    running: set[tuple[str, str]] = field(default_factory=set)
    fails: bool = False

    def folder(self, run_id: str, node_id: str) -> Path:
        return Path("/nodes") / run_id / node_id

    def start(self, node: Node, request: LaunchRequest) -> None:
        if self.fails:
            raise OSError("too many processes")
        self.running.add((request.run_id, node.node_id))

    def stop(self, run_id: str, node_id: str) -> None:
        self.running.discard((run_id, node_id))

    def present(self, expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:  # noqa: ARG002
        return frozenset(self.running)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def driver() -> Recorded:
    return Recorded()


@pytest.fixture
def fleets(driver: Recorded, clock: StandingClock) -> Iterator[LocalFleets]:
    with closing(LocalFleets(None, driver, clock, seeded(7), Faults())) as made:
        yield made


def short(driver: Recorded, clock: StandingClock, *faults: str) -> LocalFleets:
    return LocalFleets(None, driver, clock, seeded(7), Faults.parse(faults))


def test_a_launch_gives_what_was_asked(fleets: LocalFleets, driver: Recorded) -> None:
    result = fleets.launch(launch_request("job-1", count=3))
    assert [node.life for node in result.nodes] == ["running"] * 3
    assert {node.instance_type for node in result.nodes} == {"i4i.large"}
    assert all(len(node.node_id) == 19 and node.node_id.startswith("i-") for node in result.nodes)
    assert {node.shared_folder for node in result.nodes} == {f"/nodes/job-1/{node.node_id}" for node in result.nodes}
    assert len(driver.running) == 3
    assert result.faults == ()


def test_the_same_token_gives_the_same_nodes_again(fleets: LocalFleets, driver: Recorded) -> None:
    first = fleets.launch(launch_request("job-1", count=2))
    assert fleets.launch(launch_request("job-1", count=2)) == first
    assert len(driver.running) == 2


def test_the_same_token_with_other_parameters_is_an_error(fleets: LocalFleets) -> None:
    fleets.launch(launch_request("job-1", count=2))
    with pytest.raises(ClientTokenReused, match="token-1"):
        fleets.launch(launch_request("job-1", count=3))


def test_a_repeated_launch_tells_how_its_nodes_are_now(fleets: LocalFleets) -> None:
    (node,) = fleets.launch(launch_request("job-1")).nodes
    fleets.terminate([node.node_id])
    assert [one.life for one in fleets.launch(launch_request("job-1")).nodes] == ["terminated"]


def test_the_next_type_is_tried_when_the_first_is_short(driver: Recorded, clock: StandingClock) -> None:
    with closing(short(driver, clock, "capacity:i4i.large")) as fleets:
        result = fleets.launch(launch_request("job-1", count=2))
    assert [node.instance_type for node in result.nodes] == ["i4i.xlarge"] * 2
    assert {(one.instance_type, one.meaning) for one in result.faults} == {("i4i.large", "capacity")}


def test_a_short_zone_leaves_the_next_one(driver: Recorded, clock: StandingClock) -> None:
    with closing(short(driver, clock, "capacity:us-east-1a")) as fleets:
        result = fleets.launch(launch_request("job-1", count=2))
    assert [node.zone for node in result.nodes] == ["us-east-1b"] * 2


def test_a_partial_fleet_and_its_faults_come_together(driver: Recorded, clock: StandingClock) -> None:
    with closing(short(driver, clock, "capacity:i4i.large=1", "capacity:i4i.xlarge")) as fleets:
        result = fleets.launch(launch_request("job-1", count=5))
    assert len(result.nodes) == 3, "one in each zone"
    assert {one.instance_type for one in result.faults} == {"i4i.large", "i4i.xlarge"}


def test_no_capacity_at_all_names_every_type_and_zone(driver: Recorded, clock: StandingClock) -> None:
    with closing(short(driver, clock, "capacity:*")) as fleets:
        result = fleets.launch(launch_request("job-1"))
    assert result.nodes == ()
    assert len(result.faults) == 6


def test_termination_leaves_unknown_ids_out_and_may_be_repeated(fleets: LocalFleets) -> None:
    (node,) = fleets.launch(launch_request("job-1")).nodes
    assert fleets.terminate([node.node_id, "i-00000000000000000"]) == (node.node_id,)
    assert fleets.terminate([node.node_id]) == (node.node_id,)


def test_runs_are_listed_apart_and_together(fleets: LocalFleets) -> None:
    fleets.launch(launch_request("job-1"))
    fleets.launch(launch_request("job-10", count=2, token="token-2"))
    assert len(fleets.list_nodes("job-1")) == 1
    assert len(fleets.list_nodes("job-10")) == 2
    assert len(fleets.list_nodes()) == 3


def test_a_terminated_node_is_listed_for_an_hour(fleets: LocalFleets, clock: StandingClock) -> None:
    (node,) = fleets.launch(launch_request("job-1")).nodes
    fleets.terminate([node.node_id])
    assert [one.life for one in fleets.list_nodes("job-1")] == ["terminated"]
    clock.instant += timedelta(minutes=59)
    assert [one.life for one in fleets.list_nodes("job-1")] == ["terminated"]
    clock.instant += timedelta(minutes=2)
    assert fleets.list_nodes("job-1") == ()


def test_a_node_that_ended_by_itself_is_terminated(fleets: LocalFleets, driver: Recorded) -> None:
    fleets.launch(launch_request("job-1"))
    driver.running.clear()
    assert [one.life for one in fleets.list_nodes("job-1")] == ["terminated"]


def test_a_node_thought_dead_that_still_runs_is_ended_again(fleets: LocalFleets, driver: Recorded) -> None:
    (node,) = fleets.launch(launch_request("job-1")).nodes
    driver.running.clear()
    assert [one.life for one in fleets.list_nodes("job-1")] == ["terminated"]
    driver.running.add(("job-1", node.node_id))
    assert [one.life for one in fleets.list_nodes("job-1")] == ["stopping"]
    assert driver.running == set()
    assert [one.life for one in fleets.list_nodes("job-1")] == ["terminated"]


def test_a_node_is_never_thought_dead_in_its_first_moment(tmp_path: Path, clock: StandingClock) -> None:
    driver = process_nodes(tmp_path)
    with closing(LocalFleets(None, driver, clock, seeded(1), Faults())) as fleets:
        for number in range(10):
            result = fleets.launch(launch_request(f"{RUN}-{number}", token=str(number)))
            assert [node.life for node in result.nodes] == ["running"]
    driver.close()


def test_a_node_that_cannot_start_is_a_fault(fleets: LocalFleets, driver: Recorded) -> None:
    driver.fails = True
    result = fleets.launch(launch_request("job-1"))
    assert [node.life for node in result.nodes] == ["terminated"]
    assert [(one.meaning, one.message) for one in result.faults] == [
        ("other", "cannot start a process: too many processes")
    ]


def test_one_seed_gives_one_series_of_ids(clock: StandingClock) -> None:
    ids = []
    for _ in range(2):
        with closing(LocalFleets(None, Recorded(), clock, seeded(3), Faults())) as fleets:
            ids.append([node.node_id for node in fleets.launch(launch_request("job-1", count=4)).nodes])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4


def test_another_process_can_list_and_terminate(tmp_path: Path, clock: StandingClock) -> None:
    file, run_id = tmp_path / "fleets.sqlite3", f"{RUN}-b"
    driver_of_crashed = process_nodes(tmp_path)
    with closing(LocalFleets(file, driver_of_crashed, clock, seeded(1), Faults())) as crashed:
        (node,) = crashed.launch(launch_request(run_id)).nodes
    driver = process_nodes(tmp_path)
    with closing(LocalFleets(file, driver, clock, seeded(2), Faults())) as fleets:
        assert fleets.list_nodes(run_id) == (node,)
        assert fleets.terminate([node.node_id]) == (node.node_id,)
        assert fleets.list_nodes(run_id)[0].life in ("stopping", "terminated")
        wait_until(lambda: [one.life for one in fleets.list_nodes(run_id)] == ["terminated"])
    driver.close()
    driver_of_crashed.close()


@pytest.mark.parametrize("agent", [STUBBORN, DOUBLE_FORKING], ids=["stubborn", "double-forking"])
def test_a_node_is_terminated_only_when_nothing_of_it_runs(
    tmp_path: Path, clock: StandingClock, agent: tuple[str, ...]
) -> None:
    run_id = f"{RUN}-c"
    driver = process_nodes(tmp_path, agent, stop_grace_seconds=0.3)
    with closing(LocalFleets(None, driver, clock, seeded(1), Faults())) as fleets:
        (node,) = fleets.launch(launch_request(run_id)).nodes
        wait_until((tmp_path / run_id / node.node_id / "ready").exists)
        fleets.terminate([node.node_id])
        assert [one.life for one in fleets.list_nodes(run_id)] == ["stopping"], "the call returns before the end"
        wait_until(lambda: [one.life for one in fleets.list_nodes(run_id)] == ["terminated"])
        assert marked_processes({"HEADRACE_RUN": run_id}) == {}
    driver.close()


def test_a_node_lives_as_long_as_its_trainer_even_without_an_agent(tmp_path: Path, clock: StandingClock) -> None:
    run_id = f"{RUN}-d"
    driver = process_nodes(tmp_path, DOUBLE_FORKING)
    with closing(LocalFleets(None, driver, clock, seeded(1), Faults())) as fleets:
        (node,) = fleets.launch(launch_request(run_id)).nodes
        wait_until((tmp_path / run_id / node.node_id / "ready").exists)
        agent = (tmp_path / run_id / node.node_id / "agent.pid").read_text()
        os.kill(int(agent.partition(":")[0]), signal.SIGKILL)
        wait_until(lambda: not driver.has_agent(run_id, node.node_id))
        assert [one.life for one in fleets.list_nodes(run_id)] == ["running"]
        assert kill_marked({"HEADRACE_RUN": run_id})
        assert [one.life for one in fleets.list_nodes(run_id)] == ["terminated"]
    driver.close()


class EndedMeanwhile(Recorded):
    """A driver during whose start somebody else asks for the end of the node."""

    others: LocalFleets

    def start(self, node: Node, request: LaunchRequest) -> None:
        assert self.others.terminate([node.node_id]) == (node.node_id,)
        super().start(node, request)


def test_a_node_asked_to_end_while_it_came_up_ends(clock: StandingClock) -> None:
    driver = EndedMeanwhile()
    with closing(LocalFleets(None, driver, clock, seeded(1), Faults())) as fleets:
        driver.others = fleets
        assert [node.life for node in fleets.launch(launch_request("job-1")).nodes] == ["terminated"]
    assert driver.running == set()
