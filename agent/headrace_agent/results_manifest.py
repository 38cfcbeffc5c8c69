"""Writes the results manifest: its parts first, the manifest last, so that a manifest always tells the truth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import obstore

from headrace_agent.result_files import Skipped
from headrace_agent.results_journal import ResultsJournal, SavedFile

if TYPE_CHECKING:
    from obstore.store import S3Store

FILES_PER_PART = 1_000
SKIPPED_MAX = 1_000


@dataclass(frozen=True)
class ManifestHead:
    """Whose results they are and where.

    `folder` is that of manifest and parts, below the run's prefix `run_prefix`, as all references to them are.
    """

    run_id: str
    attempt: int
    node_id: str
    bucket: str
    prefix: str
    run_prefix: str
    folder: str


def write_manifest(store: S3Store, head: ManifestHead, journal: ResultsJournal, skipped: list[Skipped]) -> str:
    """Write parts and manifest. Return the manifest's key below the run's prefix; raises what obstore raises."""
    files, total_bytes = journal.totals()
    parts = []
    for number, part in enumerate(_batches(journal.files())):
        name = f"{head.folder}part-{number:05d}.json"
        _put(store, head.run_prefix + name, {"files": [_described(one) for one in part]})
        parts.append(name)
    manifest = {
        "version": 1,
        "run_id": head.run_id,
        "attempt": head.attempt,
        "node_id": head.node_id,
        "bucket": head.bucket,
        "prefix": head.prefix,
        "files": files,
        "bytes": total_bytes,
        "parts": parts,
        "skipped": _described_skipped(skipped),
        "written_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
    }
    _put(store, f"{head.run_prefix}{head.folder}manifest.json", manifest)
    return f"{head.folder}manifest.json"


def _batches(files: Iterable[SavedFile]) -> Iterator[list[SavedFile]]:
    rest = iter(files)
    while batch := list(islice(rest, FILES_PER_PART)):
        yield batch


def _described(saved: SavedFile) -> dict[str, Any]:
    return {
        "path": saved.path,
        "key": saved.key,
        "bytes": saved.bytes,
        "sha256": saved.sha256,
        "etag": saved.etag,
    }


def _described_skipped(skipped: list[Skipped]) -> list[str]:
    described = [str(one) for one in skipped[:SKIPPED_MAX]]
    return described + ([f"and {len(skipped) - SKIPPED_MAX} more"] if len(skipped) > SKIPPED_MAX else [])


def _put(store: S3Store, key: str, value: dict[str, Any]) -> None:
    obstore.put(store, key, json.dumps(value, indent=1).encode())
