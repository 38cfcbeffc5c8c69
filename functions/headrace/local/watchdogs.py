"""Starts a watchdog beside each process node, and ends it with its node."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

from headrace.local import marker

WATCHDOG = Path(__file__).with_name("watchdog.py")
WATCHED_RUN, WATCHED_NODE = "HEADRACE_WATCHED_RUN", "HEADRACE_WATCHED_NODE"
"""The marks by which watchdogs are found; they have none of a node, since they are no part of one."""


def kill_watchdogs(run_id: str, node_id: str | None = None) -> None:
    """Kill the watchdogs of a run, or of one of its nodes, whoever started them."""
    marks = {WATCHED_RUN: run_id} | ({} if node_id is None else {WATCHED_NODE: node_id})
    marker.kill_marked(marks)


class Watchdogs:
    """The watchdogs that this process started, by (run id, node id)."""

    def __init__(self, idle_lease_seconds: float) -> None:
        self._idle_lease_seconds = idle_lease_seconds
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def start(self, run_id: str, node_id: str, agent: str, deadline_at: datetime) -> None:
        """Watch the node whose agent is the process `pid:start-time-ticks`; it ends at the deadline at the latest."""
        pid, _, start_ticks = agent.partition(":")
        process = subprocess.Popen(
            (
                *(sys.executable, "-I", "-S", str(WATCHDOG), pid, start_ticks),
                *(str(deadline_at.timestamp()), str(self._idle_lease_seconds)),
            ),
            cwd="/",
            env={WATCHED_RUN: run_id, WATCHED_NODE: node_id},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with self._lock:
            self._running[run_id, node_id] = process

    def watched(self) -> frozenset[tuple[str, str]]:
        """Return the nodes whose watchdog was started here and still sees something of them, or has not looked."""
        with self._lock:
            self._running = {key: process for key, process in self._running.items() if process.poll() is None}
            return frozenset(self._running)

    def end(self, run_id: str, node_id: str) -> None:
        """End the watchdog of a node that is gone, whoever started it."""
        with self._lock:
            process = self._running.pop((run_id, node_id), None)
        if process is None:
            kill_watchdogs(run_id, node_id)
        else:
            process.kill()
            process.wait()
