"""Knows which checkpoints of a job are complete and saved, and brings the newest back for the next attempt."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from headrace_agent.fields import ConfigError, Fields
from headrace_agent.reach import OpenBucket
from headrace_agent.result_files import state_of
from headrace_agent.results_journal import ResultsJournal, SavedFile
from headrace_agent.s3 import check_key, open_bucket
from headrace_agent.safe_paths import SafeRoot, UnsafePath

if TYPE_CHECKING:
    from obstore.store import S3Store

LOG = logging.getLogger(__name__)
FOLDER = "checkpoints"
"""Every file or folder directly below this folder of the results is one checkpoint."""

MARKERS = (".metadata", ".complete")
"""What a checkpoint that is a folder ends with: torch.distributed.checkpoint writes `.metadata` last.

Each node judges what lies below its own results folder, and the next attempt's node of the same rank gets that back. Of
a checkpoint that the ranks of several nodes wrote together, each its own shards, a node without the marker gets nothing
back, and the node that has it gets its own shards, whether or not the others' were saved in time. Such a job writes a
`.complete` on every node once all ranks are done, and its ranks agree on a step that all of them were given.
"""

KEPT = 3
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint, all files of which are saved as they are now; `name` is that of its file or folder."""

    name: str
    files: tuple[SavedFile, ...]

    @property
    def written_ns(self) -> int:
        """Return when its last file was written."""
        return max(file.mtime_ns for file in self.files)


def newest_saved(root: Path, journal: ResultsJournal) -> tuple[Checkpoint, ...]:
    """Return the newest checkpoints below the results folder that are complete and saved, the newest first."""
    by_name: dict[str, list[SavedFile]] = defaultdict(list)
    for file in journal.files(f"{FOLDER}/"):
        by_name[file.path.split("/")[1]].append(file)
    found = (Checkpoint(name, tuple(files)) for name, files in by_name.items())
    return newest_of(one for one in found if _is_complete(root, one))


def newest_of(found: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return the newest of them, the newest first."""
    return tuple(sorted(found, key=lambda one: -one.written_ns)[:KEPT])


def still_saved(store: S3Store, key: str, journal: ResultsJournal) -> Iterator[Checkpoint]:
    """Yield the checkpoints published under the key, those of which all files are saved as they were then.

    Raises ConfigError for what no agent wrote, and what obstore raises.
    """
    try:
        fields = Fields.parse(bytes(obstore.get(store, key).bytes()), "the published checkpoints")
    except FileNotFoundError:
        return
    for one in fields.sections("checkpoints"):
        wanted = {file.text("key"): file.text("sha256") for file in one.sections("files")}
        rows = (journal.saved(file.text("path")) for file in one.sections("files"))
        files = tuple(row for row in rows if row)
        if files and {file.key: file.sha256 for file in files} == wanted:
            yield Checkpoint(one.text("name"), files)


def _is_complete(root: Path, one: Checkpoint) -> bool:
    """Tell whether the folder holds exactly what is saved, and its marker; a single file is complete when saved."""
    top = root / FOLDER / one.name
    saved = {file.path: file for file in one.files}
    if set(saved) == {f"{FOLDER}/{one.name}"}:
        return _is_as_saved(root, saved.values())
    there = {str(path.relative_to(root)) for path in top.rglob("*") if path.is_file()}
    has_marker = any(f"{FOLDER}/{one.name}/{marker}" in saved for marker in MARKERS)
    return has_marker and there == set(saved) and _is_as_saved(root, saved.values())


def _is_as_saved(root: Path, files: Iterable[SavedFile]) -> bool:
    states = ((file, state_of(root, file.path)) for file in files)
    return all(state is not None and state[1:] == (file.bytes, file.mtime_ns) for file, state in states)


def publish(store: S3Store, key: str, bucket: str, newest: Iterable[Checkpoint]) -> None:
    """Write where the checkpoints are; raises what obstore raises."""
    described = [{"name": one.name, "files": [_described(file) for file in one.files]} for one in newest]
    obstore.put(store, key, json.dumps({"version": 1, "bucket": bucket, "checkpoints": described}).encode())


def _described(file: SavedFile) -> dict[str, str | int]:
    return {"path": file.path, "key": file.key, "bytes": file.bytes, "sha256": file.sha256}


def bring_back(store: S3Store, key: str, target: Path, open_store: OpenBucket = open_bucket) -> Path | None:
    """Copy the newest checkpoint published under the key that is still whole into the folder `target`, emptied first.

    Return its file or folder, or None when there is none: one that the job wrote anew may be lost between its upload
    and its publication. Raises ConfigError for what no agent wrote, and what obstore raises.
    """
    try:
        fields = Fields.parse(bytes(obstore.get(store, key).bytes()), "the published checkpoints")
    except FileNotFoundError:
        return None
    bucket = open_store(fields.text("bucket"))
    for one in fields.sections("checkpoints"):
        shutil.rmtree(target, ignore_errors=True)
        root = SafeRoot(target)
        if all(_bring(bucket, file, root) for file in one.sections("files")):
            return target / FOLDER / one.text("name")
        LOG.warning("the checkpoint %s is not as it was saved; trying the one before", one.text("name"))
    return None


def _bring(bucket: S3Store, file: Fields, root: SafeRoot) -> bool:
    """Copy one file; return whether it is what was saved."""
    key, sha256 = file.text("key"), hashlib.sha256()
    try:
        check_key(key)
        path = root.place(file.text("path"))
    except (ValueError, UnsafePath) as error:
        raise ConfigError(f"{file.where}: {error}") from error
    try:
        pieces = obstore.get(bucket, key).stream(PIECE_BYTES)
    except FileNotFoundError:
        return False
    with path.open("wb") as stream:
        for piece in pieces:
            sha256.update(piece)
            stream.write(piece)
    return sha256.hexdigest() == file.text("sha256")
