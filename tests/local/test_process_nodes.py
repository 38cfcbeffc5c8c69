"""A process node is a folder, a file that says what it is, and one agent with marks in its environment."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.local.marker import environment_of, marked_processes
from headrace.local.process_nodes import ProcessNodes
from headrace.ports import Node
from tests.local.agents import OBEDIENT, STUBBORN, launch_request, process_nodes
from tests.waiting import wait_until

RUN = f"nodes-{os.getpid()}"
NODE = Node(
    node_id="i-1",
    run_id=RUN,
    role="storage",
    instance_type="i4i.large",
    zone="us-east-1a",
    address="127.0.0.1",
    life="pending",
    launched_at=datetime(2026, 11, 30, tzinfo=UTC),
)

IT = frozenset({(RUN, "i-1")})


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[ProcessNodes]:
    driver = process_nodes(tmp_path, AWS_REGION="us-east-1", PATH=os.environ["PATH"])
    yield driver
    driver.close()
    assert marked_processes({"HEADRACE_RUN": RUN}) == {}


def agent_pid(nodes: ProcessNodes) -> int:
    return int((nodes.folder(RUN, "i-1") / "agent.pid").read_text().partition(":")[0])


def test_the_agent_finds_its_marks_and_its_file(nodes: ProcessNodes, tmp_path: Path) -> None:
    nodes.start(NODE, launch_request(RUN))
    environment = environment_of(agent_pid(nodes))
    assert environment == {
        "HEADRACE_RUN": RUN,
        "HEADRACE_NODE": "i-1",
        "HEADRACE_NODE_FILE": str(tmp_path / RUN / "i-1" / "node.json"),
        "AWS_REGION": "us-east-1",
        "PATH": os.environ["PATH"],
    }
    assert json.loads(Path(environment["HEADRACE_NODE_FILE"]).read_text()) == {
        "run_id": RUN,
        "node_id": "i-1",
        "role": "storage",
        "attempt": 1,
        "run_bucket": "runs-bucket",
        "event_bus": "headrace",
        "process_node": True,
        "deadline_at": "2099-11-30T12:00:00.000Z",
        "idle_lease_seconds": 60.0,
        "folder": str(tmp_path / RUN / "i-1"),
    }


def test_a_started_node_is_present_and_has_an_agent(nodes: ProcessNodes) -> None:
    nodes.start(NODE, launch_request(RUN))
    assert nodes.present(IT) >= IT
    assert nodes.has_agent(RUN, "i-1")
    assert not nodes.has_agent(RUN, "i-2")


def test_stopping_asks_the_agent_first(nodes: ProcessNodes) -> None:
    nodes.start(NODE, launch_request(RUN))
    wait_until((nodes.folder(RUN, "i-1") / "ready").exists)
    nodes.stop(RUN, "i-1")
    nodes.stop(RUN, "i-1")
    wait_until(lambda: not nodes.present(IT) & IT)
    assert not nodes.has_agent(RUN, "i-1")


def test_closing_ends_nodes_that_do_not_listen(tmp_path: Path) -> None:
    nodes = process_nodes(tmp_path, STUBBORN, stop_grace_seconds=0.2)
    nodes.start(NODE, launch_request(RUN))
    wait_until((nodes.folder(RUN, "i-1") / "ready").exists)
    nodes.close()
    assert marked_processes({"HEADRACE_RUN": RUN}) == {}


def test_an_agent_that_died_is_noticed(nodes: ProcessNodes) -> None:
    nodes.start(NODE, launch_request(RUN))
    os.kill(agent_pid(nodes), signal.SIGKILL)
    wait_until(lambda: not nodes.has_agent(RUN, "i-1"))
    assert not nodes.present(IT) & IT


def test_an_agent_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    nodes = process_nodes(tmp_path, (str(tmp_path / "missing"),))
    with pytest.raises(FileNotFoundError):
        nodes.start(NODE, launch_request(RUN))
    nodes.close()


def test_what_the_agent_says_is_kept(tmp_path: Path) -> None:
    nodes = process_nodes(tmp_path, (*OBEDIENT[:-1], "print('up', flush=True)"))
    nodes.start(NODE, launch_request(RUN))
    log = nodes.folder(RUN, "i-1") / "log" / "agent.log"
    wait_until(lambda: log.read_text() == "up\n")
    nodes.close()


def test_an_ended_node_has_lost_its_disks_and_kept_its_log(nodes: ProcessNodes) -> None:
    nodes.start(NODE, launch_request(RUN))
    folder = nodes.folder(RUN, "i-1")
    wait_until((folder / "ready").exists)
    for name in ("volumes/dataset-000", "results"):
        (folder / name).mkdir(parents=True)
    nodes.stop(RUN, "i-1")
    nodes.close()
    assert not (folder / "volumes").exists()
    assert not (folder / "results").exists()
    assert (folder / "log" / "agent.log").exists()
