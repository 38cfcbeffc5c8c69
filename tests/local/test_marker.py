"""Processes of a run are found by exact entries of their environment, wherever they hide."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from headrace.local.marker import (
    environment_of,
    kill_marked,
    marked_processes,
    present_nodes,
    signal_marked,
    signal_process,
)
from tests.local.agents import DOUBLE_FORKING
from tests.waiting import wait_until

Start = Callable[..., subprocess.Popen[bytes]]
RUN = f"job-{os.getpid()}"
SLEEPING = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*command: str, **environment: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command or SLEEPING, env=environment))
        return started[-1]

    yield begin
    kill_marked({"HEADRACE_RUN": RUN})
    for process in started:
        process.kill()
        process.wait()


def test_job_1_is_not_job_10(start: Start) -> None:
    one = start(HEADRACE_RUN=RUN)
    ten = start(HEADRACE_RUN=f"{RUN}0")
    assert set(marked_processes({"HEADRACE_RUN": RUN})) == {one.pid}
    assert kill_marked({"HEADRACE_RUN": RUN})
    assert one.wait() == -signal.SIGKILL
    assert ten.poll() is None


def test_a_value_inside_another_entry_is_no_mark(start: Start) -> None:
    start(OTHER=f"HEADRACE_RUN={RUN}", XHEADRACE_RUN=RUN, HEADRACE_RUN=f" {RUN}")
    assert marked_processes({"HEADRACE_RUN": RUN}) == {}


def test_every_entry_must_match(start: Start) -> None:
    both = start(HEADRACE_RUN=RUN, HEADRACE_NODE="i-1")
    start(HEADRACE_RUN=RUN, HEADRACE_NODE="i-10")
    assert set(marked_processes({"HEADRACE_RUN": RUN, "HEADRACE_NODE": "i-1"})) == {both.pid}
    expected = frozenset({(RUN, "i-1"), (RUN, "i-10")})
    assert expected <= present_nodes(expected)


def test_a_double_fork_hides_nothing(start: Start) -> None:
    parent = start(*DOUBLE_FORKING, HEADRACE_RUN=RUN)
    marks = {"HEADRACE_RUN": RUN}
    wait_until(lambda: len(marked_processes(marks)) == 2)
    parent.kill()
    parent.wait()
    assert len(marked_processes(marks)) == 1, "the grandchild lives without its parent"
    assert kill_marked(marks)
    assert marked_processes(marks) == {}


def test_a_process_that_keeps_forking_is_caught(start: Start) -> None:
    runner = "import os\nfor _ in range(3000):\n    if os.fork():\n        os._exit(0)"
    start(sys.executable, "-c", runner, HEADRACE_RUN=RUN)
    assert kill_marked({"HEADRACE_RUN": RUN})
    assert marked_processes({"HEADRACE_RUN": RUN}) == {}


def test_a_process_that_keeps_becoming_another_program_is_seen(start: Start) -> None:
    again = "import os, sys; os.execv(sys.executable, sys.orig_argv)"
    start(sys.executable, "-S", "-E", "-c", again, HEADRACE_RUN=RUN, HEADRACE_NODE="i-1")
    expected = frozenset({(RUN, "i-1")})
    assert all(expected <= present_nodes(expected) for _ in range(100))


def test_the_process_that_looks_is_never_found(monkeypatch: pytest.MonkeyPatch) -> None:
    inherited = environment_of(os.getpid())
    assert inherited, "this process has an environment"
    assert os.getpid() not in marked_processes({"PATH": inherited["PATH"]})
    monkeypatch.setenv("HEADRACE_RUN", RUN)
    assert kill_marked({"HEADRACE_RUN": RUN})


def test_a_signal_reaches_only_the_marked(start: Start) -> None:
    one, other = start(HEADRACE_RUN=RUN), start(HEADRACE_RUN=f"{RUN}-2")
    assert signal_marked(signal.SIGTERM, {"HEADRACE_RUN": RUN}) == 1
    assert one.wait() == -signal.SIGTERM
    assert not signal_process(other.pid, signal.SIGTERM, {"HEADRACE_RUN": RUN})
    assert not signal_process(one.pid, signal.SIGTERM, {"HEADRACE_RUN": RUN})


def test_killing_without_a_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="refused to kill"):
        kill_marked({})
