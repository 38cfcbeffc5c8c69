"""How simulated agents save results, and what compute nodes leave on scratch volumes of storage nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from headrace.domain.access import BucketAccess
from headrace.domain.instants import to_text
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.local.simulated.memory import MemoryObjects

RESULT = b"a trained model"
DAMAGES = (b"", RESULT[:-1], RESULT[::-1])
"""What is found in the place of a result that was lost, cut or changed."""


class Place(NamedTuple):
    """Where an agent works: its machine, its run, and the bucket of the run."""

    node_id: str
    run_id: str
    bucket: str

    @property
    def prefix(self) -> str:
        """Of the run's keys."""
        return f"runs/{self.run_id}/"


class Saved(NamedTuple):
    """Whose result goes where: a compute node's, whoever saves it."""

    node_id: str
    attempt: int
    bucket: str
    prefix: str

    @property
    def key(self) -> str:
        """Of the only result."""
        return f"{self.prefix}model-{self.node_id}.bin"


class LentScratch:
    """Which compute nodes have written a result to a scratch volume that is on a storage node."""

    def __init__(self) -> None:
        self._written: set[tuple[str, str]] = set()

    def write(self, run_id: str, node_id: str) -> None:
        """Note that the node's command wrote its result."""
        self._written.add((run_id, node_id))

    def holds(self, run_id: str, node_id: str) -> bool:
        """Tell whether the node left a result there."""
        return (run_id, node_id) in self._written


class SimulatedSaving:
    """Writes results and their manifests; `buckets` says how those are reached that are not ours."""

    def __init__(self, place: Place, objects: MemoryObjects, now: Callable[[], datetime]) -> None:
        self.buckets: tuple[BucketAccess, ...] = ()
        self._place = place
        self._objects = objects
        self._now = now

    def at(self, bucket: str) -> MemoryObjects:
        """Return the storage as this bucket is reached."""
        access = next((one for one in self.buckets if one.bucket == bucket), None)
        return self._objects.objects(access, self._place.run_id) if access else self._objects

    def save(self, saved: Saved) -> str:
        """Write a node's result, then its manifest; return that one's key below the run's prefix."""
        objects = self.at(saved.bucket)
        objects.put(saved.bucket, saved.key, RESULT)
        file = ResultFile(
            path=f"model-{saved.node_id}.bin",
            key=saved.key,
            bytes=len(RESULT),
            sha256=hashlib.sha256(RESULT).hexdigest(),
            etag=objects.head(saved.bucket, saved.key).etag,
        )
        folder = f"results/{saved.node_id}/"
        self._write(folder + "part-00000.json", ResultsPart(files=(file,)))
        manifest = ResultsManifest(
            run_id=self._place.run_id,
            attempt=saved.attempt,
            node_id=saved.node_id,
            bucket=saved.bucket,
            prefix=saved.prefix,
            files=1,
            bytes=len(RESULT),
            parts=(folder + "part-00000.json",),
            written_at=to_text(self._now()),
        )
        self._write(folder + "manifest.json", manifest)
        return folder + "manifest.json"

    def damage(self, saved: Saved, damage: int) -> None:
        """Have a saved result be lost (0), cut (1) or changed (2)."""
        if DAMAGES[damage]:
            self.at(saved.bucket).put(saved.bucket, saved.key, DAMAGES[damage])
        else:
            self.at(saved.bucket).delete(saved.bucket, saved.key)

    def _write(self, name: str, model: ResultsPart | ResultsManifest) -> None:
        self._objects.put(self._place.bucket, self._place.prefix + name, model.model_dump_json().encode())
