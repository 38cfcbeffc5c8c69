"""A model of the agent: the same lifecycle and the same events as the real one, without a machine."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.domain.dataset import DatasetPart
from headrace.domain.errors import ObjectMissing
from headrace.domain.events import SOURCE, event_id, signature
from headrace.domain.instants import to_text
from headrace.domain.nodeconfig import Identity, NodeConfig, Notice, StageConfig, TrainConfig
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.local.loop import LoopClock
from headrace.local.simulated.lease import SimulatedLease
from headrace.local.simulated.machines import Machine
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.simulated.worlds import machine_world

Send = Callable[[str, str, dict[str, Any]], None]
"""Given source, detail-type and detail."""

IDENTITY_POLL_SECONDS = 1.0
CONFIGURE_SECONDS = 8.0
STAGE_BYTES_PER_S = 500_000_000
TRAIN_SECONDS = 60.0
FOR_EVER_SECONDS = 10.0**8
RESULT = b"a trained model"


class SimulatedAgent:
    """The agent of one machine.

    `exit_code` is how its training command ends, `skew_seconds` how far its clock is ahead, `hangs` that its work
    never ends, `cannot_save` that results do not get to S3, `cannot_stage` that a file of the data set does not come.
    `power_off` ends the machine from inside, which `is_leased` False takes away; `is_serving` tells whether another
    machine works on what this one holds.
    """

    def __init__(
        self, machine: Machine, objects: MemoryObjects, bucket: str, loop: asyncio.AbstractEventLoop, send: Send
    ) -> None:
        self.exit_code = 0
        self.skew_seconds = 0.0
        self.hangs = self.cannot_save = self.cannot_stage = False
        self.is_leased = True
        self.power_off: Callable[[str], None] = lambda _why: None
        self.is_serving: Callable[[], bool] = lambda: False
        self.lease = SimulatedLease(machine.request.deadline_at, loop)
        self._work: StageConfig | TrainConfig | None = None
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
        self.activity = "idle"
        self.heartbeat_seconds = 15.0
        """Until a configuration names another."""
        self.folder_prefix = ""

    def boot(self) -> None:
        """Start the agent's life on the machine, and the timer that ends the machine without it."""
        if self.is_leased and not self._is_armed:
            self._is_armed = True
            self._loop.call_later(self._seconds_to_deadline(), self._end_at_deadline, context=machine_world())
        self._start(self._live())

    def run_document(self, document: str) -> asyncio.Task[None]:
        """Do what the document does; staging and training go on after it has ended, as on a real machine."""
        if document in ("stage-dataset", "train-job"):
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
        self.activity = "idle"

    def crash(self) -> None:
        """End as a killed process does: not a word, and whatever it ran ends with it."""
        for task in self._machine.tasks:
            task.cancel()
        self._machine.tasks.clear()

    def restart(self) -> None:
        """Begin again after a crash: staging goes on, a job that ran is lost (headrace_agent.train)."""
        self.boot()
        if isinstance(self._work, StageConfig):
            self._start(self._stage(self._work))
        elif isinstance(self._work, TrainConfig):
            self.activity = "idle"
            self._emit("Job Failed", {"reason": "the agent died while the job ran, so the job was ended"})

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work, context=machine_world())
        self._machine.tasks.append(task)
        return task

    async def _live(self) -> None:
        while self._identity is None:
            await asyncio.sleep(IDENTITY_POLL_SECONDS)
            self._identity = self._read_identity()
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
        now = self._clock.now() + timedelta(seconds=self.skew_seconds)
        is_working = self.activity != "idle" or self.is_serving()
        reason = self.lease.reason_to_leave(now, is_working=is_working)
        if reason:
            self.say_goodbye(reason)
            self._loop.call_soon(self.power_off, reason)
        return bool(reason)

    def _seconds_to_deadline(self) -> float:
        left = (self._machine.request.deadline_at - self._clock.now()).total_seconds()
        return max(0.0, left - self.skew_seconds)

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
            "sent_at": to_text(self._clock.now() + timedelta(seconds=self.skew_seconds)),
            "body": body,
        }
        detail["hmac"] = signature(detail_type, detail, bytes.fromhex(identity.hmac_key))
        self._send(SOURCE, detail_type, detail)

    async def _hand_over(self, document: str) -> None:
        config = NodeConfig.model_validate_json(self._objects.get(self._bucket, self._own("config.json")))
        self.heartbeat_seconds = config.heartbeat_seconds
        if document == "stage-dataset" and config.stage:
            self._start(self._stage(config.stage))
        if document == "train-job" and config.train:
            self._start(self._train(config.train))

    async def _configure(self) -> None:
        await asyncio.sleep(CONFIGURE_SECONDS)
        self._emit("Node Configured", {"actions": 1, "not_executed": ["everything, in a simulation"]})

    async def _hang(self) -> None:
        if self.hangs:
            await asyncio.sleep(FOR_EVER_SECONDS)

    async def _stage(self, stage: StageConfig) -> None:
        self._work, self.activity = stage, "staging"
        files = [
            file
            for part in stage.parts
            for file in DatasetPart.model_validate_json(self._objects.get(self._bucket, self._prefix + part)).files
        ]
        rate = {"total_files": stage.files, "total_bytes": stage.bytes, "rate_bytes_per_s": STAGE_BYTES_PER_S}
        await asyncio.sleep(1 + stage.bytes / STAGE_BYTES_PER_S)
        await self._hang()
        self._work = None
        if self.cannot_stage:
            self.activity = "idle"
            self._emit("Dataset Failed", {"reason": "an object is gone", "missing": [file.path for file in files[:1]]})
            return
        self._emit("Dataset Progress", {"files": stage.files, "bytes": stage.bytes, **rate})
        lines = sorted(f"{file.path}\t{file.bytes}\t{file.etag}" for file in files)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        self._emit("Dataset Staged", {"files": len(files), "bytes": stage.bytes, "digest": digest})
        self.activity = "idle"

    async def _train(self, train: TrainConfig) -> None:
        self._work, self.activity = train, "training"
        self._emit("Job Started", {"pid": 1})
        await asyncio.sleep(TRAIN_SECONDS / 2)
        self._emit("Job Progress", {"step": 1, "total_steps": 2, "metrics": {"loss": "0.5"}, "message": None})
        await asyncio.sleep(TRAIN_SECONDS / 2)
        await self._hang()
        self._finish(train)

    def _finish(self, train: TrainConfig) -> None:
        self._work, self.activity = None, "idle"
        if self.cannot_save:
            self._emit("Job Failed", {"reason": "1 of 1 results could not be saved: 503 SlowDown"})
            return
        manifest = self._save(train)
        self._emit("Results Progress", {"files": 1, "bytes": len(RESULT)})
        if self.exit_code == 0:
            self._emit("Job Done", {"manifest": manifest, "files": 1, "bytes": len(RESULT)})
        else:
            reason = f"the command ended with exit code {self.exit_code}"
            self._emit("Job Failed", {"reason": reason, "exit_code": self.exit_code, "manifest": manifest})

    def _save(self, train: TrainConfig) -> str:
        node_id = self._machine.node.node_id
        key = f"{train.results_prefix}model-{node_id}.bin"
        self._objects.put(train.results_bucket, key, RESULT)
        etag = self._objects.head(train.results_bucket, key).etag
        saved = ResultFile(
            path=f"model-{node_id}.bin",
            key=key,
            bytes=len(RESULT),
            sha256=hashlib.sha256(RESULT).hexdigest(),
            etag=etag,
        )
        folder = f"results/{node_id}/"
        self._write(folder + "part-00000.json", ResultsPart(files=(saved,)))
        manifest = ResultsManifest(
            run_id=self._machine.node.run_id,
            attempt=1 if self._identity is None else self._identity.attempt,
            node_id=node_id,
            bucket=train.results_bucket,
            prefix=train.results_prefix,
            files=1,
            bytes=len(RESULT),
            parts=(folder + "part-00000.json",),
            written_at=to_text(self._clock.now()),
        )
        self._write(folder + "manifest.json", manifest)
        return folder + "manifest.json"

    def _write(self, name: str, model: ResultsPart | ResultsManifest) -> None:
        self._objects.put(self._bucket, self._prefix + name, model.model_dump_json().encode())
