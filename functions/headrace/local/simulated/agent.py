"""A model of the agent: the same lifecycle and the same events as the real one, without a machine."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from headrace.domain.dataset import DatasetPart
from headrace.domain.errors import ObjectMissing
from headrace.domain.events import SOURCE, event_id, signature
from headrace.domain.instants import to_text
from headrace.domain.nodeconfig import Identity, NodeConfig, StageConfig, TrainConfig
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.local.loop import LoopClock
from headrace.local.simulated.machines import Machine
from headrace.local.simulated.memory import MemoryObjects

Send = Callable[[str, str, dict[str, Any]], None]
"""Given source, detail-type and detail."""

IDENTITY_POLL_SECONDS = 1.0
CONFIGURE_SECONDS = 8.0
STAGE_BYTES_PER_S = 500_000_000
TRAIN_SECONDS = 60.0
RESULT = b"a trained model"


class SimulatedAgent:
    """The agent of one machine; `exit_code` is how its training command ends."""

    def __init__(
        self, machine: Machine, objects: MemoryObjects, bucket: str, loop: asyncio.AbstractEventLoop, send: Send
    ) -> None:
        self.exit_code = 0
        self._machine = machine
        self._objects = objects
        self._bucket = bucket
        self._prefix = f"runs/{machine.node.run_id}/"
        self._clock = LoopClock(loop)
        self._loop = loop
        self._send = send
        self._identity: Identity | None = None
        self._sequence = 0
        self._activity = "idle"
        self._heartbeat_seconds = 15.0

    def boot(self) -> None:
        """Start the agent's life on the machine."""
        self._start(self._live())

    def run_document(self, document: str) -> asyncio.Task[None]:
        """Do what the document does; staging and training go on after it has ended, as on a real machine."""
        if document in ("stage-dataset", "train-job"):
            return self._start(self._hand_over(document))
        return self._start(self._configure())

    def say_goodbye(self, reason: str = "the agent was told to stop by a signal") -> None:
        """Send the last event; an agent that never had an identity has nobody to send it as."""
        if self._identity is not None:
            self._emit("Node Leaving", {"reason": reason})

    def forget_work(self) -> None:
        """Drop every task but the heartbeat, as an agent that was restarted and lost its task would."""
        for task in self._machine.tasks[1:]:
            task.cancel()
        self._activity = "idle"

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._machine.tasks.append(task)
        return task

    async def _live(self) -> None:
        while self._identity is None:
            await asyncio.sleep(IDENTITY_POLL_SECONDS)
            self._identity = self._read_identity()
        self._emit("Node Ready", {"agent_version": "simulated", "boot_id": self._machine.node.node_id})
        while True:
            self._emit("Telemetry Sampled", {"activity": self._activity, "agent_resident_bytes": 0, "outbox_depth": 0})
            await asyncio.sleep(self._heartbeat_seconds)

    def _read_identity(self) -> Identity | None:
        try:
            return Identity.model_validate_json(self._objects.get(self._bucket, self._own("identity.json")))
        except ObjectMissing:
            return None

    def _own(self, name: str) -> str:
        return f"{self._prefix}nodes/{self._machine.node.node_id}/{name}"

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
            "sent_at": to_text(self._clock.now()),
            "body": body,
        }
        detail["hmac"] = signature(detail_type, detail, bytes.fromhex(identity.hmac_key))
        self._send(SOURCE, detail_type, detail)

    async def _hand_over(self, document: str) -> None:
        config = NodeConfig.model_validate_json(self._objects.get(self._bucket, self._own("config.json")))
        self._heartbeat_seconds = config.heartbeat_seconds
        if document == "stage-dataset" and config.stage:
            self._start(self._stage(config.stage))
        if document == "train-job" and config.train:
            self._start(self._train(config.train))

    async def _configure(self) -> None:
        await asyncio.sleep(CONFIGURE_SECONDS)
        self._emit("Node Configured", {"actions": 1, "not_executed": ["everything, in a simulation"]})

    async def _stage(self, stage: StageConfig) -> None:
        self._activity = "staging"
        files = [
            file
            for part in stage.parts
            for file in DatasetPart.model_validate_json(self._objects.get(self._bucket, self._prefix + part)).files
        ]
        rate = {"total_files": stage.files, "total_bytes": stage.bytes, "rate_bytes_per_s": STAGE_BYTES_PER_S}
        await asyncio.sleep(1 + stage.bytes / STAGE_BYTES_PER_S)
        self._emit("Dataset Progress", {"files": stage.files, "bytes": stage.bytes, **rate})
        lines = sorted(f"{file.path}\t{file.bytes}\t{file.etag}" for file in files)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        self._emit("Dataset Staged", {"files": len(files), "bytes": stage.bytes, "digest": digest})
        self._activity = "idle"

    async def _train(self, train: TrainConfig) -> None:
        self._activity = "training"
        self._emit("Job Started", {"pid": 1})
        await asyncio.sleep(TRAIN_SECONDS / 2)
        self._emit("Job Progress", {"step": 1, "total_steps": 2, "metrics": {"loss": "0.5"}, "message": None})
        await asyncio.sleep(TRAIN_SECONDS / 2)
        manifest = self._save(train)
        self._emit("Results Progress", {"files": 1, "bytes": len(RESULT)})
        self._activity = "idle"
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
