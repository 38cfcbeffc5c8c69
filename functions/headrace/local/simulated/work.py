"""A model of what an agent works at: it stages its share of the data set, trains, and saves results, also others'."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from headrace.domain.dataset import DatasetFile, DatasetPart
from headrace.domain.errors import ObjectMissing
from headrace.domain.nodeconfig import SalvageConfig, StageConfig, TrainConfig
from headrace.local.simulated.memory import ARCHIVED, MemoryObjects
from headrace.local.simulated.saving import RESULT, LentScratch, Place, Saved, SimulatedSaving

STAGE_BYTES_PER_S = 500_000_000
FOR_EVER_SECONDS = 10.0**8
Emit = Callable[[str, dict[str, Any]], None]


class Pace(NamedTuple):
    """How long machines take; `spread` is the share by which the slowest differ from the mean."""

    configure_seconds: float = 8.0
    stage_seconds: float = 1.0
    train_seconds: float = 60.0
    spread: float = 0.0

    def of(self, seconds: float, node_id: str) -> float:
        """Return what this machine takes for what others take `seconds` for; the same at each call."""
        place = int(hashlib.sha256(node_id.encode()).hexdigest()[:4], 16) / 0xFFFF
        return seconds * (1 + self.spread * (2 * place - 1))


USUAL_PACE = Pace()


@dataclass
class Troubles:
    """What goes wrong on one machine.

    `exit_code` is how its command ends, `skew_seconds` how far its clock is ahead, `hangs` that its work never ends,
    `cannot_save` that results do not get to S3, `cannot_stage` that a file of the data set does not come,
    `is_disk_full` that nothing more can be written to it, `dies_uploading` that the agent is killed when half of a
    result is uploaded, and `damage` what becomes of a result after it was saved: lost (0), cut (1), changed (2).
    """

    exit_code: int = 0
    skew_seconds: float = 0.0
    hangs: bool = False
    cannot_save: bool = False
    cannot_stage: bool = False
    is_disk_full: bool = False
    dies_uploading: bool = False
    damage: int | None = None


class SimulatedWork:
    """What one agent does; `emit` sends its events, `attempt` and `now` are for manifests.

    `is_data_there` tells whether every machine that holds a share still runs; without it a trainer waits for ever.
    `die` ends the agent in the midst of its work.
    """

    def __init__(
        self, place: Place, objects: MemoryObjects, pace: Pace, emit: Emit, now: Callable[[], datetime]
    ) -> None:
        self.activity = "idle"
        self.current: StageConfig | TrainConfig | SalvageConfig | None = None
        self.troubles = Troubles()
        self.has_staged = False
        self.is_data_there: Callable[[], bool] = lambda: True
        self.die: Callable[[], None] = lambda: None
        self.attempt = 1
        self.scratch = LentScratch()
        """Of all machines."""
        self.saving = SimulatedSaving(place, objects, now)
        self._place = place
        self._objects = objects
        self._pace = pace
        self._emit = emit

    async def configure(self) -> None:
        """Take as long as the document does."""
        await asyncio.sleep(self._pace.configure_seconds)

    async def stage(self, stage: StageConfig) -> None:
        """Read every object of the share, or say which one could not be."""
        self.current, self.activity = stage, "staging"
        files = [
            file
            for part in stage.parts
            for file in DatasetPart.model_validate_json(self._read(self._place.prefix + part)).files
        ]
        rate = {"total_files": stage.files, "total_bytes": stage.bytes, "rate_bytes_per_s": STAGE_BYTES_PER_S}
        await asyncio.sleep(self._takes(self._pace.stage_seconds) + stage.bytes / STAGE_BYTES_PER_S)
        await self._hang_if(self.troubles.hangs)
        self.current, self.activity = None, "idle"
        if faults := list(self._unstaged(files)):
            path, reason = faults[0]
            self._emit("Dataset Failed", {"reason": reason, "missing": [path]})
            return
        self.has_staged = True
        self._emit("Dataset Progress", {"files": stage.files, "bytes": stage.bytes, **rate})
        lines = sorted(f"{file.path}\t{file.bytes}\t{file.etag}" for file in files)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        self._emit("Dataset Staged", {"files": len(files), "bytes": stage.bytes, "digest": digest})

    def _unstaged(self, files: list[DatasetFile]) -> Iterator[tuple[str, str]]:
        """Yield path and reason of each file that cannot be staged."""
        for file in files:
            if self.troubles.is_disk_full:
                yield file.path, "No space left on device"
            elif self.troubles.cannot_stage:
                yield file.path, "an object is gone"
            elif reason := self._fault(file):
                yield file.path, reason

    def _fault(self, file: DatasetFile) -> str | None:
        bucket, _, key = file.source.removeprefix("s3://").partition("/")
        try:
            found = self.saving.at(bucket).head(bucket, key)
        except ObjectMissing:
            return f"{file.source}: it is no longer there"
        if found.storage_class == ARCHIVED:
            return f"{file.source}: it is archived"
        return None if found.etag == file.etag else f"{file.source}: it changed since it was listed"

    async def train(self, train: TrainConfig, *, borrows: bool = False) -> None:
        """Run the command and save its result, which it `borrows` room for on a storage node."""
        self.current, self.activity = train, "training"
        half_seconds = self._takes(self._pace.train_seconds) / 2
        self._emit("Job Started", {"pid": 1})
        await asyncio.sleep(half_seconds)
        self._emit("Job Progress", {"step": 1, "total_steps": 2, "metrics": {"loss": "0.5"}, "message": None})
        if borrows:
            self.scratch.write(self._place.run_id, self._place.node_id)
        await asyncio.sleep(half_seconds)
        await self._hang_if(self.troubles.hangs or not self.is_data_there())
        if self.troubles.dies_uploading:
            saved = self._saved(train)
            self.saving.at(saved.bucket).upload_half(saved.bucket, saved.key, RESULT)
            self.die()
            return
        self._finish(train)

    def _finish(self, train: TrainConfig) -> None:
        self.current, self.activity = None, "idle"
        if trouble := self._saving_trouble():
            self._emit("Job Failed", {"reason": f"1 of 1 results could not be saved: {trouble}"})
            return
        manifest = self.saving.save(self._saved(train))
        if self.troubles.damage is not None:
            self.saving.damage(self._saved(train), self.troubles.damage)
        self._emit("Results Progress", {"files": 1, "bytes": len(RESULT)})
        if self.troubles.exit_code == 0:
            self._emit("Job Done", {"manifest": manifest, "files": 1, "bytes": len(RESULT)})
        else:
            reason = f"the command ended with exit code {self.troubles.exit_code}"
            self._emit("Job Failed", {"reason": reason, "exit_code": self.troubles.exit_code, "manifest": manifest})

    async def salvage(self, salvage: SalvageConfig) -> None:
        """Save what compute nodes that are gone left on scratch volumes of this machine."""
        self.current, self.activity = salvage, "salvaging"
        await asyncio.sleep(self._takes(self._pace.stage_seconds))
        await self._hang_if(self.troubles.hangs)
        self.current, self.activity = None, "idle"
        found = [one for one in salvage.left if self.scratch.holds(self._place.run_id, one.node_id)]
        trouble = self._saving_trouble() if found else ""
        for one in found if not trouble else ():
            self.saving.save(Saved(one.node_id, one.attempt, one.results_bucket, one.results_prefix))
        saved = 0 if trouble else len(found)
        ranks = [one.node_rank for one in salvage.left if not (trouble and one in found)]
        body = {"ranks": ranks, "files": saved, "bytes": saved * len(RESULT)}
        self._emit("Results Salvaged", body | ({"trouble": trouble} if trouble else {}))

    def _saved(self, train: TrainConfig) -> Saved:
        return Saved(self._place.node_id, self.attempt, train.results_bucket, train.results_prefix)

    def _saving_trouble(self) -> str:
        if self.troubles.is_disk_full:
            return "No space left on device"
        return "503 SlowDown" if self.troubles.cannot_save else ""

    def _read(self, key: str) -> bytes:
        return self._objects.get(self._place.bucket, key)

    def _takes(self, seconds: float) -> float:
        return self._pace.of(seconds, self._place.node_id)

    async def _hang_if(self, does_hang: bool) -> None:
        if does_hang:
            await asyncio.sleep(FOR_EVER_SECONDS)
