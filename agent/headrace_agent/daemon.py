"""The agent's long life: one per node, from its first word to its last."""

from __future__ import annotations

import logging
import os
import select
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from headrace_agent import VERSION
from headrace_agent.health_watch import HealthWatch
from headrace_agent.identity import await_identity
from headrace_agent.interruption import Interruption
from headrace_agent.kernel_names import SYSTEM
from headrace_agent.lease import Lease
from headrace_agent.lease_reader import LeaseReader
from headrace_agent.lock import FolderLock
from headrace_agent.machine import rdma_device
from headrace_agent.memory import limit_allocator
from headrace_agent.node import Node
from headrace_agent.outbox import Outbox
from headrace_agent.path_watch import PathWatch
from headrace_agent.process_tree import become_subreaper
from headrace_agent.putevents import EventBus
from headrace_agent.reporter import Reporter
from headrace_agent.reports import pass_on
from headrace_agent.salvage import run_salvage
from headrace_agent.sender import Sender
from headrace_agent.serving import Serving
from headrace_agent.spool import Spool
from headrace_agent.stage import run_stage
from headrace_agent.telemetry import boot_id, heartbeat
from headrace_agent.train import run_train
from headrace_agent.worker import Runner, Worker

LOG = logging.getLogger(__name__)
TICK_SECONDS = 0.2
FLUSH_SECONDS = 3.0
RUNNERS: Mapping[str, Runner] = {"stage": run_stage, "train": run_train, "salvage": run_salvage}


def power_off() -> None:
    """Ask the machine to power off; its launch settings turn that into termination."""
    subprocess.run(["systemctl", "poweroff"], check=False, timeout=30)


class Daemon:
    """One agent on one node; `serve` returns when the node is to be left."""

    def __init__(
        self,
        node: Node,
        environ: Mapping[str, str],
        turn_off: Callable[[], None] = power_off,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._node = node
        self._environ = environ
        self._turn_off = turn_off
        self._now = now
        self._reason = ""
        self._must_turn_off = False
        self._lease = Lease(node.deadline_at, node.idle_lease_seconds)
        self._serving = Serving()
        self._interruption = Interruption(environ)
        self._health = HealthWatch(node.configured, node.volumes)
        self._worker: Worker | None = None
        self._next_heartbeat = 0.0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Serve until told to stop, until the deadline, or until an idle lease ends.

        Raises FolderBusy when another agent serves here.
        """
        node = self._node
        with FolderLock(node.folder):
            self._listen_for_signals()
            limit_allocator()
            become_subreaper()
            outbox = Outbox(node.state / "outbox.sqlite3")
            sender = Sender(outbox, EventBus(node.event_bus, self._environ))
            sender.start()
            self._live(outbox, sender)
            LOG.info("leaving: %s", self._reason)
            if not sender.flush(FLUSH_SECONDS):
                LOG.warning("%d events could not be sent", outbox.depth())
        if self._must_turn_off and not node.process_node:
            self._turn_off()

    def _live(self, outbox: Outbox, sender: Sender) -> None:
        LeaseReader(self._node, self._lease).start()
        if not self._node.process_node:
            self._interruption.start()
            self._watch_the_data_path()
        identity = await_identity(self._node, self._is_over)
        if identity is None:
            return
        say = Reporter(identity, outbox, sender.wake)
        node = self._node
        self._worker = worker = Worker(node, Spool(node.folder / "spool"), say, RUNNERS)
        device = None if node.process_node else rdma_device(SYSTEM)
        found = {"rdma_device": device} if device else {}
        say("Node Ready", {"agent_version": VERSION, "boot_id": boot_id(), **found})
        while not self._is_over(TICK_SECONDS):
            try:
                self._tend(worker, say, outbox)
            except (OSError, sqlite3.Error):
                LOG.exception("going on, though the disk refused something")
        if not worker.stop(self._reason):
            LOG.error("the running task did not stop in time")
        say("Node Leaving", {"reason": self._reason})

    def _watch_the_data_path(self) -> None:
        """Watch what a reader uses of other machines; a storage node leaves those that it filled when it has sealed."""
        if self._node.role == "compute":
            self._health.start()
            PathWatch().start()

    def _tend(self, worker: Worker, say: Reporter, outbox: Outbox) -> None:
        pass_on(self._node.folder / "spool", say)
        worker.tend()
        if time.monotonic() >= self._next_heartbeat:
            self._next_heartbeat = time.monotonic() + worker.heartbeat_seconds
            say("Telemetry Sampled", heartbeat(worker.activity, outbox.depth(), self._health.told))

    def _is_over(self, seconds: float) -> bool:
        """Wait that long, or less when a signal comes. Tell whether the agent must leave."""
        readable, _, _ = select.select([self._wake_read], [], [], seconds)
        if readable:
            self._reason = self._reason or "the agent was told to stop by a signal"
        elif not self._reason:
            self._reason = self._reason_to_leave()
            self._must_turn_off = bool(self._reason)
        return bool(self._reason)

    def _reason_to_leave(self) -> str:
        if self._interruption.reason:
            return self._interruption.reason
        is_working = self._worker is not None and self._worker.activity != "idle"
        return self._lease.reason_to_leave(self._now(), is_working=is_working, is_serving=self._is_serving)

    def _is_serving(self) -> bool:
        """Tell whether a job elsewhere uses this machine; what a process node holds can be read without its agent."""
        return self._node.role == "storage" and not self._node.process_node and self._serving.is_serving()

    def _listen_for_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._wake())

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"!")
        except BlockingIOError:
            return
