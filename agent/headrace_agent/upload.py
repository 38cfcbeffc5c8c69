"""Saves one file as one object and makes sure that the object is the file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from headrace_agent.etags import looks_like_md5, md5_of
from headrace_agent.multipart import upload_in_parts
from headrace_agent.result_files import FileState, state_of
from headrace_agent.results_journal import SavedFile
from headrace_agent.s3 import plain_etag
from headrace_agent.snapshots import Snapshots

if TYPE_CHECKING:
    from obstore.store import S3Store

PART_BYTES = 8 * 1024 * 1024
PARTS_MAX = 9_000
"""S3 takes 10,000 parts of an object; larger parts are used before that."""

READ_BYTES = 256 * 1024


class NotSaved(Exception):
    """The object is not the file; saving it again may help."""


class FileChanged(Exception):
    """The file was written while it was read; it must settle first."""


@dataclass(frozen=True)
class Digests:
    """What is known of a file from one reading: its SHA-256, and the ETag of an object of these bytes.

    S3 makes it of one part, as MD5, or of parts: the MD5 of their MD5s, a hyphen, and how many they are.
    """

    sha256: str
    etag: str


def part_bytes_of(size_bytes: int) -> int:
    """Return how large the parts of an object are; one that is no larger than that is not uploaded in parts."""
    return max(PART_BYTES, size_bytes // PARTS_MAX + 1)


def digests_of(path: Path, part_bytes: int) -> Digests:
    """Return the digests of a file's bytes."""
    sha256, part = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    parts: list[bytes] = []
    left = part_bytes
    buffer = memoryview(bytearray(READ_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer[:left]):
            sha256.update(buffer[:count])
            part.update(buffer[:count])
            left -= count
            if not left:
                parts.append(part.digest())
                part, left = hashlib.md5(usedforsecurity=False), part_bytes
    return Digests(sha256.hexdigest(), _etag(parts, part.digest(), is_begun=left < part_bytes))


def _etag(parts: list[bytes], last: bytes, *, is_begun: bool) -> str:
    of_parts = parts + [last] * (is_begun or not parts)
    if len(of_parts) == 1:
        return of_parts[0].hex()
    return f"{hashlib.md5(b''.join(of_parts), usedforsecurity=False).hexdigest()}-{len(of_parts)}"


def save(store: S3Store, root: Path, file: FileState, key: str, snapshots: Snapshots) -> SavedFile:
    """Upload the file and verify the object by its ETag, else by reading it back.

    Raises FileChanged when the file was written meanwhile, NotSaved when the object differs, and what obstore raises.
    """
    part_bytes = part_bytes_of(file.bytes)
    with snapshots.of(root, file.path) as snapshot:
        if snapshot.is_frozen:
            _check_unchanged(root, file)
        digests = digests_of(snapshot.path, part_bytes)
        etag = _put(store, key, snapshot.path, file.bytes, part_bytes)
        if not snapshot.is_frozen:
            _check_unchanged(root, file)
        # Some servers (rclone's) name parts in their answer, and show the MD5 of the whole from then on.
        if etag != digests.etag or file.bytes > part_bytes:
            etag = _verify(store, key, file, snapshot.path, digests)
    return SavedFile(file.path, key, file.bytes, file.mtime_ns, digests.sha256, etag)


def _put(store: S3Store, key: str, path: Path, size_bytes: int, part_bytes: int) -> str:
    with path.open("rb", buffering=0) as file:
        if size_bytes > part_bytes:
            return upload_in_parts(store, key, file.fileno(), size_bytes, part_bytes)
        return plain_etag(obstore.put(store, key, file.read(part_bytes), use_multipart=False)["e_tag"])


def _check_unchanged(root: Path, file: FileState) -> None:
    if state_of(root, file.path) != file:
        raise FileChanged(f"{file.path} was written while it was being saved")


def _verify(store: S3Store, key: str, file: FileState, path: Path, digests: Digests) -> str:
    """Settle what an unexpected ETag leaves open: a key service's, or that of a server which makes it otherwise."""
    found = obstore.head(store, key)
    etag = plain_etag(found["e_tag"])
    if found["size"] != file.bytes:
        raise NotSaved(f"{file.path} has {file.bytes} bytes and its object {found['size']}")
    is_proven = etag == digests.etag or (looks_like_md5(etag) and etag == md5_of(path))
    if not is_proven and _sha256_of_object(store, key) != digests.sha256:
        raise NotSaved(f"{file.path} and its object hold different bytes")
    return etag


def _sha256_of_object(store: S3Store, key: str) -> str:
    sha256 = hashlib.sha256()
    for piece in obstore.get(store, key).stream(READ_BYTES):
        sha256.update(piece)
    return sha256.hexdigest()
