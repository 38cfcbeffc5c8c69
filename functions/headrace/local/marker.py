"""Finding and ending every process of a run by the marker in its environment, so that a double fork hides nothing."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.local.owner import owner_of

RUN, NODE, OWNER = "HEADRACE_RUN", "HEADRACE_NODE", "HEADRACE_OWNER"
PROC = Path("/proc")
MAX_LOOKS = 50
DYING_MS = 1000
BETWEEN_LOOKS_SECONDS = 0.05
CERTAIN_LOOKS = 4
"""A process that does nothing but become another program escaped 1 look in 100; see `present_nodes`."""


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment the process was started with; empty when it is gone, a zombie or another user's."""
    try:
        text = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in text.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def marked_processes(marks: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """Return processes, with their environment, that have exactly these entries: `job-1` is not `job-10`."""
    found = {pid: environment_of(pid) for pid in _pids()}
    return {pid: environment for pid, environment in found.items() if marks.items() <= environment.items()}


def present_nodes(expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Return (run id, node id) of every node that has a process.

    While an expected one is missing, more looks with pauses between them are joined: a process shows no environment
    for a moment while it becomes another program, and one whose parent forks and ends can escape a look.
    """
    seen = frozenset(_nodes_seen())
    for _ in range(CERTAIN_LOOKS - 1):
        if expected <= seen:
            break
        threading.Event().wait(BETWEEN_LOOKS_SECONDS)
        seen |= frozenset(_nodes_seen())
    return seen


def await_marks(pid: int, marks: Mapping[str, str]) -> None:
    """Return once a process just started shows these entries, or has ended."""
    while not marks.items() <= environment_of(pid).items() and owner_of(pid) is not None:
        threading.Event().wait(0.001)


def signal_marked(number: signal.Signals, marks: Mapping[str, str]) -> int:
    """Signal every process that has exactly these entries; return how many were there."""
    return sum(signal_process(pid, number, marks) for pid in marked_processes(marks))


def kill_marked(marks: Mapping[str, str]) -> bool:
    """Kill every process that has exactly these entries, until looks in a row, with pauses, find none.

    Return False when some are left: a process that waits for a broken disk cannot be killed.
    """
    if not marks:
        raise ValueError("refused to kill processes without naming an entry of their environment")
    quiet_looks = 0
    for _ in range(MAX_LOOKS):
        killed = [signal_process(pid, signal.SIGKILL, marks, DYING_MS) for pid in marked_processes(marks)]
        quiet_looks = 0 if killed else quiet_looks + 1
        if quiet_looks == CERTAIN_LOOKS:
            return True
        if not killed:
            threading.Event().wait(BETWEEN_LOOKS_SECONDS)
    return False


def signal_process(pid: int, number: signal.Signals, marks: Mapping[str, str], wait_ms: int = 0) -> bool:
    """Signal the process if it has these entries, and wait that long for its end; return whether it was there.

    The signal goes through a descriptor, so that a number given to another process meanwhile is never hit.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not marks.items() <= environment_of(pid).items():
            return False
        signal.pidfd_send_signal(descriptor, number)
        _await_end(descriptor, wait_ms)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _await_end(descriptor: int, wait_ms: int) -> None:
    ends = select.poll()
    ends.register(descriptor, select.POLLIN)
    ends.poll(wait_ms)


def _pids() -> Iterator[int]:
    own = os.getpid()
    numbers = (int(entry) for entry in os.listdir(PROC) if entry.isdecimal())  # noqa: PTH208 - one call, no objects
    return (pid for pid in numbers if pid != own)


def _nodes_seen() -> Iterator[tuple[str, str]]:
    for environment in map(environment_of, _pids()):
        if RUN in environment and NODE in environment:
            yield environment[RUN], environment[NODE]
