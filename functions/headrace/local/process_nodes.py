"""Nodes as processes: one agent per node, marked in its environment, ended softly and then for certain."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.domain.instants import to_text
from headrace.domain.launch import LaunchRequest
from headrace.local import marker
from headrace.local.owner import is_alive, owner_of
from headrace.local.watchdogs import Watchdogs
from headrace.ports import Node

AGENT = (sys.executable, "-m", "headrace_agent", "serve")
EVENT_BUS = "headrace"
REAP_SECONDS = 0.1
IDLE_LEASE_SECONDS = 60.0


class ProcessNodes:
    """The driver of local nodes, below `root`/<run id>/<node id>.

    `environment` is what every node finds besides its marks: PATH, keys, endpoints. Ending a node signals its agent
    and returns; whatever carries the node's marks after `stop_grace_seconds` is killed. Beside each agent a watchdog
    ends the node if this process cannot: at its deadline, or `idle_lease_seconds` after its agent died.
    """

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str],
        *,
        run_bucket: str,
        stop_grace_seconds: float,
        agent: Sequence[str] = AGENT,
        idle_lease_seconds: float = IDLE_LEASE_SECONDS,
    ) -> None:
        self._root = root
        self._environment = dict(environment)
        self._run_bucket = run_bucket
        self._stop_grace_seconds = stop_grace_seconds
        self._agent = tuple(agent)
        self._idle_lease_seconds = idle_lease_seconds
        self._watchdogs = Watchdogs(idle_lease_seconds)
        self._lock = threading.Lock()
        self._agents: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self._endings: dict[tuple[str, str], threading.Thread] = {}

    def folder(self, run_id: str, node_id: str) -> Path:
        """Return the node's folder."""
        return self._root / run_id / node_id

    def environment(self, run_id: str, node_id: str) -> dict[str, str]:
        """Return the environment of every process of the node."""
        file = self.folder(run_id, node_id) / "node.json"
        marks = {marker.RUN: run_id, marker.NODE: node_id, "HEADRACE_NODE_FILE": str(file)}
        return {**self._environment, **marks}

    def start(self, node: Node, request: LaunchRequest) -> None:
        """Write the node's file and start its agent; return once its marks can be seen. Raises OSError."""
        folder = self.folder(node.run_id, node.node_id)
        (folder / "log").mkdir(parents=True, exist_ok=True)
        (folder / "node.json").write_text(json.dumps(self.node_file(node, request), indent=1))
        with (folder / "log" / "agent.log").open("ab") as log:
            process = subprocess.Popen(
                self._agent,
                cwd=folder,
                env=self.environment(node.run_id, node.node_id),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        marker.await_marks(process.pid, self._marks(node.run_id, node.node_id))
        agent = owner_of(process.pid) or ""
        (folder / "agent.pid").write_text(agent)
        with self._lock:
            self._agents[node.run_id, node.node_id] = process
        self._watchdogs.start(node.run_id, node.node_id, agent or "0:0", request.deadline_at)

    def has_agent(self, run_id: str, node_id: str) -> bool:
        """Tell whether the node's agent process lives."""
        return is_alive(self._agent_of(run_id, node_id))

    def stop(self, run_id: str, node_id: str) -> None:
        """Signal the agent, or what is left without one; return at once, and see in the background to the rest."""
        with self._lock:
            is_ending = (run_id, node_id) in self._endings and self._endings[run_id, node_id].is_alive()
            if not is_ending:
                thread = threading.Thread(target=self._end, args=(run_id, node_id), name=f"end-{node_id}", daemon=True)
                self._endings[run_id, node_id] = thread
                self._ask(run_id, node_id)
                thread.start()

    def present(self, expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return (run id, node id) of every node that has a process, whoever started it; certain of those expected."""
        self._reap()
        return marker.present_nodes(expected)

    def close(self) -> None:
        """End every node that was started here, and wait for it: without this process they serve nobody."""
        for run_id, node_id in {*self._agents, *self._watchdogs.watched()}:
            self.stop(run_id, node_id)
        for thread in tuple(self._endings.values()):
            thread.join()
        self._reap()

    def _ask(self, run_id: str, node_id: str) -> None:
        agent = self._agent_of(run_id, node_id)
        pid = int(agent.partition(":")[0]) if is_alive(agent) else None
        if pid is None or not marker.signal_process(pid, signal.SIGTERM, self._marks(run_id, node_id)):
            marker.signal_marked(signal.SIGTERM, self._marks(run_id, node_id))

    def _end(self, run_id: str, node_id: str) -> None:
        marks, patience = self._marks(run_id, node_id), threading.Event()
        for _ in range(max(1, round(self._stop_grace_seconds / REAP_SECONDS))):
            patience.wait(REAP_SECONDS)
            if (run_id, node_id) not in self._own() and not marker.marked_processes(marks):
                break
        self._kill_own(run_id, node_id)
        marker.kill_marked(marks)
        self._reap()
        self._watchdogs.end(run_id, node_id)
        _wipe(self.folder(run_id, node_id))

    def _own(self) -> frozenset[tuple[str, str]]:
        """Return the nodes whose agent was started here and lives.

        A process that was started a moment ago shows no environment yet, so its marks alone would miss it.
        """
        self._reap()
        with self._lock:
            return frozenset(self._agents)

    def _kill_own(self, run_id: str, node_id: str) -> None:
        with self._lock:
            agent = self._agents.get((run_id, node_id))
        if agent is not None:
            agent.kill()
            agent.wait()

    def _reap(self) -> None:
        """Collect agents that ended, so that none stays as a zombie."""
        with self._lock:
            self._agents = {key: process for key, process in self._agents.items() if process.poll() is None}

    def _agent_of(self, run_id: str, node_id: str) -> str:
        try:
            return (self.folder(run_id, node_id) / "agent.pid").read_text()
        except FileNotFoundError:
            return ""

    def _marks(self, run_id: str, node_id: str) -> dict[str, str]:
        return {marker.RUN: run_id, marker.NODE: node_id}

    def node_file(self, node: Node, request: LaunchRequest) -> dict[str, object]:
        """Return what the node is told about itself at its launch."""
        return {
            "run_id": node.run_id,
            "node_id": node.node_id,
            "role": node.role,
            "attempt": request.attempt,
            "run_bucket": self._run_bucket,
            "event_bus": EVENT_BUS,
            "process_node": True,
            "deadline_at": to_text(request.deadline_at),
            "idle_lease_seconds": self._idle_lease_seconds,
            "folder": str(self.folder(node.run_id, node.node_id)),
        }


def _wipe(folder: Path) -> None:
    """Remove what the node's disks held, as a terminated machine loses its own; what says what happened stays."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and path.name != "log":
            shutil.rmtree(path, ignore_errors=True)
