"""Parts of the daemon that a whole life does not show."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace_agent.bounded import OutOfTime, within
from headrace_agent.lock import FolderBusy, FolderLock
from headrace_agent.memory import limit_allocator
from headrace_agent.region import own_region
from headrace_agent.telemetry import boot_id, heartbeat
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import AgentNode

PAST_ITS_DEADLINE = """
import os, sys
from dataclasses import replace
from headrace_agent.daemon import Daemon
from headrace_agent.node import load_node
node = replace(load_node(os.environ), process_node=sys.argv[1] == "process node")
Daemon(node, os.environ, turn_off=lambda: print("powered off")).serve()
"""


@pytest.mark.parametrize(("kind", "said"), [("machine", "powered off\n"), ("process node", "")])
def test_past_its_deadline_a_machine_is_powered_off_and_a_process_node_only_ends(
    node: AgentNode, kind: str, said: str
) -> None:
    node.deadline_at = datetime.now(UTC) - timedelta(seconds=1)
    node.write_node_file()
    done = subprocess.run(
        [sys.executable, "-c", PAST_ITS_DEADLINE, kind],
        env=node.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, said)


def test_an_agent_that_was_told_to_stop_powers_nothing_off(node: AgentNode, bus: FakeBus) -> None:
    node.write_node_file()
    node.give_identity()
    with subprocess.Popen(
        [sys.executable, "-c", PAST_ITS_DEADLINE, "machine"], env=node.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        bus.await_event("Node Ready")
        process.terminate()
        assert process.communicate(timeout=60)[0] == ""
    assert bus.bodies("Node Leaving") == [{"reason": "the agent was told to stop by a signal"}]


def test_a_folder_has_one_agent_and_is_free_when_that_one_is_gone(tmp_path: Path) -> None:
    second = FolderLock(tmp_path)
    with FolderLock(tmp_path), pytest.raises(FolderBusy, match=r"another agent \(process \d+\) already runs"):
        second.__enter__()
    with FolderLock(tmp_path):
        assert (tmp_path / "agent.lock").exists()


def test_a_killed_agent_leaves_its_folder_free(tmp_path: Path) -> None:
    code = (
        "import os,sys; from pathlib import Path; from headrace_agent.lock import FolderLock;"
        "FolderLock(Path(sys.argv[1])).__enter__(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with FolderLock(tmp_path):
        assert (tmp_path / "agent.lock").exists()


def test_a_heartbeat_tells_the_agents_true_memory() -> None:
    body = heartbeat("training", 3)
    assert (body["activity"], body["outbox_depth"]) == ("training", 3)
    assert 5_000_000 < body["agent_resident_bytes"] < 2_000_000_000


def test_a_machine_without_a_boot_id_says_unknown(tmp_path: Path) -> None:
    assert boot_id(tmp_path / "absent") == "unknown"
    (tmp_path / "boot_id").write_text("abc\n")
    assert boot_id(tmp_path / "boot_id") == "abc"


def test_the_allocator_takes_its_limits() -> None:
    assert limit_allocator()


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-west-2"}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
        ({"AWS_SSM_REGION_NAME": "ap-south-1"}, "ap-south-1"),
    ],
)
def test_the_region_is_that_of_the_environment(environ: dict[str, str], region: str) -> None:
    assert own_region(environ) == region


def test_a_bounded_call_returns_raises_or_runs_out_of_time() -> None:
    def breaks() -> None:
        raise ValueError("broken")

    assert within(30, lambda: 42) == 42
    with pytest.raises(ValueError, match="broken"):
        within(30, breaks)
    never = threading.Event()
    with pytest.raises(OutOfTime):
        within(0.01, lambda: never.wait(30))
    never.set()
