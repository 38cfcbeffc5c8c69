"""The data set's manifest: which object becomes which file, in parts small enough for one step."""

from __future__ import annotations

from headrace.domain.model import Bytes, Contract

FILES_PER_PART = 10_000


class DatasetFile(Contract):
    """One object and the relative path it becomes below the data directory."""

    source: str
    """Address of the object, `s3://bucket/key`."""
    path: str
    bytes: Bytes
    etag: str


class DatasetPart(Contract):
    """A slice of the manifest, kept as one JSON object in the run's bucket."""

    files: tuple[DatasetFile, ...]


class DatasetSummary(Contract):
    """What inspection found in all; `parts` are keys below the run's prefix, in order."""

    files: int
    bytes: Bytes
    largest_bytes: Bytes
    parts: tuple[str, ...]
    input_bytes: tuple[Bytes, ...] = ()
    """Bytes of each input of the job, in its order; empty where they were not counted apart."""
