"""Whatever is killed, a process node ends: by its watchdog when neither its agent nor its driver is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.domain.launch import LaunchRequest
from headrace.local.marker import environment_of, kill_marked, marked_processes
from headrace.local.owner import is_alive, owner_of
from headrace.local.process_nodes import ProcessNodes
from headrace.local.watchdogs import WATCHED_NODE, WATCHED_RUN, kill_watchdogs
from headrace.ports import Node
from tests.local.agents import DOUBLE_FORKING, OBEDIENT, STUBBORN, launch_request
from tests.waiting import wait_until

RUN = f"watched-{os.getpid()}"
IT = (RUN, "i-1")
CHECKOUT = Path(__file__).parents[2]
Start = Callable[..., ProcessNodes]
DRIVING = """
import sys
from pathlib import Path
from tests.local.agents import DOUBLE_FORKING, launch_request
from tests.local.test_watchdog import driver, node
driver(Path(sys.argv[1]), DOUBLE_FORKING, 0.5).start(node(sys.argv[2]), launch_request(sys.argv[2]))
print("started", flush=True)
input()
"""


def node(run_id: str = RUN) -> Node:
    return Node("i-1", run_id, "storage", "i4i.large", "us-east-1a", "127.0.0.1", "pending", datetime.now(UTC))


def driver(root: Path, agent: Sequence[str], idle_lease_seconds: float) -> ProcessNodes:
    return ProcessNodes(
        root,
        {"PATH": os.environ["PATH"]},
        run_bucket="runs-bucket",
        stop_grace_seconds=0.3,
        agent=agent,
        idle_lease_seconds=idle_lease_seconds,
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield what starts one node with an agent, a lease and a time until its deadline, and wait until it is up."""
    drivers: list[ProcessNodes] = []

    def begin(agent: Sequence[str], lease_seconds: float = 600, deadline_in_seconds: float = 3600) -> ProcessNodes:
        nodes = driver(tmp_path, agent, lease_seconds)
        drivers.append(nodes)
        request: LaunchRequest = launch_request(RUN)
        deadline_at = datetime.now(UTC) + timedelta(seconds=deadline_in_seconds)
        nodes.start(node(), replace(request, deadline_at=deadline_at))
        wait_until((nodes.folder(*IT) / "ready").exists)
        return nodes

    yield begin
    for nodes in drivers:
        nodes.close()
    assert processes_of_node() == []
    assert watchdogs() == []


def processes_of_node(run_id: str = RUN) -> list[int]:
    return sorted(marked_processes({"HEADRACE_RUN": run_id, "HEADRACE_NODE": "i-1"}))


def watchdogs(run_id: str = RUN) -> list[int]:
    return sorted(marked_processes({WATCHED_RUN: run_id, WATCHED_NODE: "i-1"}))


def kill_agent(nodes: ProcessNodes) -> None:
    os.kill(int((nodes.folder(*IT) / "agent.pid").read_text().partition(":")[0]), signal.SIGKILL)


def test_a_watchdog_is_small_and_no_part_of_the_node(start: Start) -> None:
    nodes = start(OBEDIENT)
    wait_until(watchdogs)
    (pid,) = watchdogs()
    assert environment_of(pid) == {WATCHED_RUN: RUN, WATCHED_NODE: "i-1"}
    wait_until(lambda: b"watchdog.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
    resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    assert resident_pages * os.sysconf("SC_PAGE_SIZE") < 16 * 10**6
    kill_agent(nodes)
    wait_until(lambda: not nodes.present(frozenset({IT})) & {IT})


def test_what_an_agent_that_was_killed_left_is_killed_after_the_lease(start: Start) -> None:
    nodes = start(DOUBLE_FORKING, lease_seconds=0.5)
    wait_until(lambda: len(processes_of_node()) == 2)
    kill_agent(nodes)
    wait_until(lambda: processes_of_node() == [])
    wait_until(lambda: watchdogs() == [])


def test_within_the_lease_it_is_left_to_those_who_clean_up(start: Start) -> None:
    nodes = start(DOUBLE_FORKING, lease_seconds=600)
    wait_until(lambda: len(processes_of_node()) == 2)
    kill_agent(nodes)
    wait_until(lambda: not nodes.has_agent(*IT))
    assert len(processes_of_node()) == 1
    assert len(watchdogs()) == 1
    nodes.close()
    assert processes_of_node() == [], "closing ends a node whose agent is dead but whose job is not"


def test_at_its_deadline_a_node_that_will_not_go_is_killed(start: Start) -> None:
    start(STUBBORN, lease_seconds=0.5, deadline_in_seconds=2)
    wait_until(lambda: processes_of_node() == [])
    wait_until(lambda: watchdogs() == [])


def test_a_deadline_comes_before_a_longer_lease(start: Start) -> None:
    nodes = start(DOUBLE_FORKING, lease_seconds=600, deadline_in_seconds=2)
    wait_until(lambda: len(processes_of_node()) == 2)
    kill_agent(nodes)
    wait_until(lambda: processes_of_node() == [])


def test_a_watchdog_ends_when_nothing_of_its_node_is_left(start: Start) -> None:
    nodes = start(OBEDIENT)
    kill_agent(nodes)
    wait_until(lambda: watchdogs() == [])


def test_stopping_a_node_ends_its_watchdog(start: Start) -> None:
    nodes = start(OBEDIENT)
    nodes.stop(*IT)
    wait_until(lambda: watchdogs() == [])
    assert processes_of_node() == []


def test_with_the_driver_and_the_agent_killed_nothing_is_left(tmp_path: Path) -> None:
    run_id = f"orphaned-{os.getpid()}"
    command = [sys.executable, "-c", DRIVING, str(tmp_path), run_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as driving:
        assert driving.stdout is not None
        assert driving.stdout.readline() == "started\n"
        wait_until(lambda: len(processes_of_node(run_id)) == 2)
        driving.kill()
        driving.wait()
    assert len(processes_of_node(run_id)) == 2, "its node outlives it"
    agent = (tmp_path / run_id / "i-1" / "agent.pid").read_text()
    os.kill(int(agent.partition(":")[0]), signal.SIGKILL)
    wait_until(lambda: not is_alive(agent))
    wait_until(lambda: processes_of_node(run_id) == [])
    wait_until(lambda: watchdogs(run_id) == [])


def test_watchdogs_are_found_by_their_run(start: Start) -> None:
    start(OBEDIENT)
    wait_until(watchdogs)
    (pid,) = watchdogs()
    watched = owner_of(pid)
    kill_watchdogs("another-run")
    assert is_alive(str(watched))
    kill_watchdogs(RUN)
    assert not is_alive(str(watched))
    assert kill_marked({"HEADRACE_RUN": RUN})
