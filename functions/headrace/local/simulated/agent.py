"""A model of the agent: the same lifecycle and the same events as the real one, without a machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.domain.errors import ObjectMissing
from headrace.domain.events import SOURCE, event_id, signature
from headrace.domain.instants import to_text
from headrace.domain.nodeconfig import Identity, NodeConfig, Notice, SalvageConfig, StageConfig, TrainConfig
from headrace.local.loop import LoopClock
from headrace.local.simulated.lease import SimulatedLease
from headrace.local.simulated.machines import Machine
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.simulated.saving import Place
from headrace.local.simulated.work import Pace, SimulatedWork, Troubles
from headrace.local.simulated.worlds import machine_world

Send = Callable[[str, str, dict[str, Any]], None]
"""Given source, detail-type and detail."""

IDENTITY_POLL_SECONDS = 1.0
RESTART_SECONDS = 5.0


class SimulatedAgent:
    """The agent of one machine.

    `power_off` ends the machine from inside, which `is_leased` False takes away; `is_serving` tells whether another
    machine works on what this one holds.
    """

    def __init__(
        self,
        machine: Machine,
        objects: MemoryObjects,
        bucket: str,
        loop: asyncio.AbstractEventLoop,
        send: Send,
        pace: Pace,
    ) -> None:
        self.is_leased = True
        self.power_off: Callable[[str], None] = lambda _why: None
        self.is_serving: Callable[[], bool] = lambda: False
        self.lease = SimulatedLease(machine.request.deadline_at, loop)
        self._machine = machine
        self._objects = objects
        self._bucket = bucket
        self._prefix = f"runs/{machine.node.run_id}/"
        self._clock = LoopClock(loop)
        self._loop = loop
        self._send = send
        self._identity: Identity | None = None
        self._sequence = 0
        self._is_armed = False
        self.notices: list[Notice] = []
        place = Place(machine.node.node_id, machine.node.run_id, bucket)
        self.work = SimulatedWork(place, objects, pace, self._emit, self._clock.now)
        self.work.die = self.crash_and_restart
        self.heartbeat_seconds = 15.0
        """Until a configuration names another."""
        self.folder_prefix = ""

    @property
    def troubles(self) -> Troubles:
        """What goes wrong on the machine."""
        return self.work.troubles

    @property
    def activity(self) -> str:
        """What the agent is doing."""
        return self.work.activity

    def boot(self) -> None:
        """Start the agent's life on the machine, and the timer that ends the machine without it."""
        if self.is_leased and not self._is_armed:
            self._is_armed = True
            self._loop.call_later(self._seconds_to_deadline(), self._end_at_deadline, context=machine_world())
        self._start(self._live())

    def run_document(self, document: str) -> asyncio.Task[None]:
        """Do what the document does; staging and training go on after it has ended, as on a real machine."""
        if document in ("stage-dataset", "train-job", "salvage-results"):
            return self._start(self._hand_over(document))
        if document == "checkpoint-job":
            return self._start(self._take_notice())
        return self._start(self._configure())

    def say_goodbye(self, reason: str = "the agent was told to stop by a signal") -> None:
        """Send the last event; an agent that never had an identity has nobody to send it as."""
        if self._identity is not None:
            self._emit("Node Leaving", {"reason": reason})

    def forget_work(self) -> None:
        """Drop every task but the heartbeat, as an agent that was restarted and lost its task would."""
        for task in self._machine.tasks[1:]:
            task.cancel()
        self.work.activity = "idle"

    def crash(self) -> None:
        """End as a killed process does: not a word, and whatever it ran ends with it."""
        for task in self._machine.tasks:
            task.cancel()
        self._machine.tasks.clear()

    def crash_and_restart(self) -> None:
        """End as a killed process does and begin again a little later, as its service manager has it."""
        self.crash()
        self._loop.call_later(RESTART_SECONDS, self.restart, context=machine_world())

    def restart(self) -> None:
        """Begin again after a crash: staging and salvaging go on, a job that ran is lost (headrace_agent.train)."""
        if self._machine.node.life != "running":
            return
        self.boot()
        work = self.work.current
        if isinstance(work, StageConfig):
            self._start(self.work.stage(work))
        elif isinstance(work, SalvageConfig):
            self._start(self.work.salvage(work))
        elif isinstance(work, TrainConfig):
            self.work.current, self.work.activity = None, "idle"
            self._emit("Job Failed", {"reason": "the agent died while the job ran, so the job was ended"})

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work, context=machine_world())
        self._machine.tasks.append(task)
        return task

    async def _live(self) -> None:
        while self._identity is None:
            await asyncio.sleep(IDENTITY_POLL_SECONDS)
            self._identity = self._read_identity()
            if self._identity is not None:
                self.work.attempt = self._identity.attempt
            if self._identity is None and self._leaves():
                return
        self._emit("Node Ready", {"agent_version": "simulated", "boot_id": self._machine.node.node_id})
        while True:
            self._emit("Telemetry Sampled", {"activity": self.activity, "agent_resident_bytes": 0, "outbox_depth": 0})
            await asyncio.sleep(self.heartbeat_seconds)
            if self._leaves():
                return

    def _leaves(self) -> bool:
        """Power off when the deadline has passed or the lease has run out; tell whether that was so."""
        if not self.is_leased:
            return False
        if self.lease.is_due():
            self.lease.take(self._read("lease.json"), has_identity=self._read("identity.json") is not None)
        now = self._clock.now() + timedelta(seconds=self.troubles.skew_seconds)
        is_working = self.activity != "idle" or self.is_serving()
        reason = self.lease.reason_to_leave(now, is_working=is_working)
        if reason:
            self.say_goodbye(reason)
            self._loop.call_soon(self.power_off, reason)
        return bool(reason)

    def _seconds_to_deadline(self) -> float:
        left = (self._machine.request.deadline_at - self._clock.now()).total_seconds()
        return max(0.0, left - self.troubles.skew_seconds)

    def _end_at_deadline(self) -> None:
        """Power off whatever the agent does, as the machine's own timer does."""
        self.power_off("the machine's own deadline")

    def _read(self, name: str) -> bytes | None:
        try:
            return self._objects.get(self._bucket, self._own(name))
        except ObjectMissing:
            return None

    async def _take_notice(self) -> None:
        if (text := self._read("notice.json")) is not None:
            self.notices.append(Notice.model_validate_json(text))

    def _read_identity(self) -> Identity | None:
        text = self._read("identity.json")
        return None if text is None else Identity.model_validate_json(text)

    def _own(self, name: str) -> str:
        return f"{self._prefix}nodes/{self.folder_prefix}{self._machine.node.node_id}/{name}"

    def _emit(self, detail_type: str, body: dict[str, Any]) -> None:
        identity = self._identity
        if identity is None:
            raise RuntimeError("an agent without an identity says nothing")
        self._sequence += 1
        detail: dict[str, Any] = {
            "version": 1,
            "event_id": event_id(identity.run_id, identity.attempt, identity.node_id, self._sequence, detail_type),
            "run_id": identity.run_id,
            "attempt": identity.attempt,
            "node_id": identity.node_id,
            "sequence": self._sequence,
            "sent_at": to_text(self._clock.now() + timedelta(seconds=self.troubles.skew_seconds)),
            "body": body,
        }
        detail["hmac"] = signature(detail_type, detail, bytes.fromhex(identity.hmac_key))
        self._send(SOURCE, detail_type, detail)

    async def _hand_over(self, document: str) -> None:
        config = NodeConfig.model_validate_json(self._objects.get(self._bucket, self._own("config.json")))
        self.heartbeat_seconds, self.work.saving.buckets = config.heartbeat_seconds, config.buckets
        if document == "stage-dataset" and config.stage:
            self._start(self.work.stage(config.stage))
        if document == "train-job" and config.train:
            borrows = any(one.kind == "scratch" and one.slices for one in config.volumes)
            self._start(self.work.train(config.train, borrows=borrows))
        if document == "salvage-results" and config.salvage:
            self._start(self.work.salvage(config.salvage))

    async def _configure(self) -> None:
        await self.work.configure()
        self._emit("Node Configured", {"actions": 1, "not_executed": ["everything, in a simulation"]})
