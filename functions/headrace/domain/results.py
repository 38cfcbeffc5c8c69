"""The results manifest: what the agent saved, written last, checked by the control plane against S3."""

from __future__ import annotations

from typing import Literal

from headrace.domain.model import Bytes, Contract

FILES_PER_PART = 1_000


class ResultFile(Contract):
    """One saved file; `path` is relative to the results directory, `key` is in the results bucket."""

    path: str
    key: str
    bytes: Bytes
    sha256: str
    etag: str


class ResultsPart(Contract):
    """At most `FILES_PER_PART` files, kept as one JSON object under the run's prefix."""

    files: tuple[ResultFile, ...]


class ResultsManifest(Contract):
    """One node's results; `skipped` names what was not saved (links, special files), with a reason each."""

    version: Literal[1] = 1
    run_id: str
    attempt: int
    node_id: str
    bucket: str
    prefix: str
    files: int
    bytes: Bytes
    parts: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    written_at: str
