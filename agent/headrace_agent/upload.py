"""Saves one file as one object and makes sure that the object is the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from headrace_agent.etags import looks_like_md5
from headrace_agent.result_files import FileState, state_of
from headrace_agent.results_journal import SavedFile
from headrace_agent.s3 import plain_etag

if TYPE_CHECKING:
    from obstore.store import S3Store

PART_BYTES = 5 * 1024 * 1024
PARTS_MAX = 9_000
"""S3 takes 10,000 parts of an object; larger parts are used before that."""

PARTS_AT_ONCE = 2
"""Little memory matters more here than speed: a job's memory is the job's."""

READ_BYTES = 1024 * 1024


class NotSaved(Exception):
    """The object is not the file; saving it again may help."""


class FileChanged(Exception):
    """The file was written while it was read; it must settle first."""


@dataclass(frozen=True)
class Digests:
    """Both digests of a file, from one reading."""

    md5: str
    sha256: str


def digests_of(path: Path) -> Digests:
    """Return the digests of a file's bytes."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(READ_BYTES):
            md5.update(data)
            sha256.update(data)
    return Digests(md5.hexdigest(), sha256.hexdigest())


def save(store: S3Store, root: Path, file: FileState, key: str, replacing: Callable[[], None]) -> SavedFile:
    """Upload the file and verify the object by size and digest; `replacing` is called just before S3 is written.

    Raises FileChanged when the file was written meanwhile, NotSaved when the object differs, and what obstore raises.
    """
    path = root / file.path
    digests = digests_of(path)
    part_bytes = max(PART_BYTES, file.bytes // PARTS_MAX + 1)
    replacing()
    obstore.put(store, key, path, chunk_size=part_bytes, max_concurrency=PARTS_AT_ONCE)
    if state_of(root, file.path) != file:
        raise FileChanged(f"{file.path} was written while it was being saved")
    etag = _verify(store, key, file, digests)
    return SavedFile(file.path, key, file.bytes, file.mtime_ns, digests.sha256, etag)


def _verify(store: S3Store, key: str, file: FileState, digests: Digests) -> str:
    found = obstore.head(store, key)
    etag = plain_etag(found["e_tag"])
    if found["size"] != file.bytes:
        raise NotSaved(f"{file.path} has {file.bytes} bytes and its object {found['size']}")
    if looks_like_md5(etag) and etag != digests.md5 and _sha256_of_object(store, key) != digests.sha256:
        raise NotSaved(f"{file.path} and its object hold different bytes")
    return etag


def _sha256_of_object(store: S3Store, key: str) -> str:
    """Read the object back: where a key service encrypts, its ETag has the form of an MD5 and is none."""
    sha256 = hashlib.sha256()
    for piece in obstore.get(store, key).stream(READ_BYTES):
        sha256.update(piece)
    return sha256.hexdigest()
