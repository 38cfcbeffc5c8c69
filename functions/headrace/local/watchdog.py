"""Ends one process node when nobody else does: `python watchdog.py <agent pid> <start ticks> <deadline> <lease>`.

Run as a file, with the standard library alone, so that it stays small and lives when everything else was killed. It
kills whatever carries the node's marks when the agent has been dead for the lease (seconds), or at the deadline
(seconds since the epoch); an agent that lives then gets one more lease to end its job well. It ends when nothing of
the node is left.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

RUN, NODE = "HEADRACE_RUN", "HEADRACE_NODE"
WATCHED_RUN, WATCHED_NODE = "HEADRACE_WATCHED_RUN", "HEADRACE_WATCHED_NODE"
"""Its own marks: with the node's it would be the last process of the node that it waits for."""
LOOK_SECONDS = 1.0
CLOCK_SECONDS = 30.0
"""How long it sleeps at most, since the clock may be set or the machine may sleep."""
CERTAIN_LOOKS = 3
"""A process shows no environment for a moment while it becomes another program."""


def main() -> None:
    """Watch until there is nothing left to watch."""
    pid, start_ticks = int(sys.argv[1]), sys.argv[2]
    deadline, lease_seconds = float(sys.argv[3]), float(sys.argv[4])
    wanted = {f"{RUN}={os.environ[WATCHED_RUN]}".encode(), f"{NODE}={os.environ[WATCHED_NODE]}".encode()}
    has_ended = await_end(pid, start_ticks, deadline)
    patience_ends = time.time() + lease_seconds
    if has_ended:
        patience_ends = min(patience_ends, max(deadline, time.time()))
    quiet_looks = 0
    while quiet_looks < CERTAIN_LOOKS:
        found = marked(wanted)
        quiet_looks = 0 if found else quiet_looks + 1
        if time.time() >= patience_ends:
            kill(found)
        time.sleep(LOOK_SECONDS)


def await_end(pid: int, start_ticks: str, deadline: float) -> bool:
    """Wait until that very process has ended; return False when the deadline passes before."""
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, ValueError):
        return True
    ends = select.poll()
    ends.register(descriptor, select.POLLIN)
    while start_ticks_of(pid) == start_ticks:
        left = deadline - time.time()
        if left <= 0:
            return False
        if ends.poll(1000 * min(left, CLOCK_SECONDS)):
            return True
    return True


def start_ticks_of(pid: int) -> str:
    """Return when a process was started (field 22 of /proc/<pid>/stat, man 5 proc), or nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:  # noqa: PTH123 - pathlib costs 2 MB
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def marked(wanted: set[bytes]) -> list[int]:
    """Return the processes that were started with exactly these entries in their environment."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and wanted <= environment(name)]  # noqa: PTH208


def environment(pid: str) -> set[bytes]:
    """Return the entries of a process's environment; empty when it is gone or another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as text:  # noqa: PTH123 - same
            return set(text.read().split(b"\0"))
    except OSError:
        return set()


def kill(pids: list[int]) -> None:
    """Kill the processes that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
