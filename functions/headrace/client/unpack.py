"""Unpacks an archive of data into a bucket of this machine, once, and nothing outside it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from headrace.client.places import BadPlace, bucket_folder, bucket_name

ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
ENTRIES_MAX = 10_000_000
SPARE_BYTES = 256 * 1024**2
"""Room that unpacking leaves free on the disk."""
CHUNK_BYTES = 1024**2
NAME_BYTES_MAX = 255
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class Entry(NamedTuple):
    """One regular file of an archive."""

    name: str
    stream: IO[bytes]


def is_archive(path: Path) -> bool:
    """Tell by the name whether the file is an archive that `unpack_once` reads."""
    return path.name.lower().endswith(ARCHIVE_ENDINGS)


def unpack_once(archive: Path, home: Path) -> str:
    """Return the bucket that holds the archive's files, made now unless the same bytes were unpacked before.

    Raises BadPlace for a damaged archive, for one that holds links, special files or paths that lead out of it, and
    for one that does not fit on the disk. Then no bucket is left behind.
    """
    bucket = bucket_name("data", _label(archive), _digest(archive))
    folder = bucket_folder(home, bucket)
    if folder.is_dir():
        return bucket
    with _scratch(home) as scratch:
        if not folder.is_dir():
            unpack(archive, scratch / "files")
            folder.parent.mkdir(parents=True, exist_ok=True)
            (scratch / "files").rename(folder)
    return bucket


def unpack(archive: Path, target: Path) -> None:
    """Write every file of the archive below the new folder `target`. Raises BadPlace as `unpack_once` does."""
    target.mkdir()
    room = shutil.disk_usage(target).free - SPARE_BYTES
    try:
        for number, entry in enumerate(_entries(archive), start=1):
            if number > ENTRIES_MAX:
                raise BadPlace(f"{archive} holds more than {ENTRIES_MAX:,} files; use a folder or a bucket instead")
            room -= _write(entry, target.joinpath(*_parts(archive, entry.name)), room, archive)
    except DAMAGED as error:
        raise BadPlace(f"{archive} cannot be unpacked: {type(error).__name__}: {error}") from error
    if not any(target.iterdir()):
        raise BadPlace(f"{archive} holds no files; a data set needs at least one")


def _entries(archive: Path) -> Iterator[Entry]:
    return _zip_entries(archive) if archive.name.lower().endswith(".zip") else _tar_entries(archive)


def _tar_entries(archive: Path) -> Iterator[Entry]:
    with tarfile.open(archive, mode="r|*") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield Entry(member.name, stream)
            elif not member.isdir():
                raise BadPlace(f"{archive} holds {member.name!r}, a link or special file; pack plain files only")


def _zip_entries(archive: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.filename.endswith("/"):
                continue
            if kind not in (0, stat.S_IFREG):
                raise BadPlace(f"{archive} holds {info.filename!r}, a link or special file; pack plain files only")
            with packed.open(info) as stream:
                yield Entry(info.filename, stream)


def _parts(archive: Path, name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        raise BadPlace(f"{archive} holds {name!r}, a path that leads out of the archive; pack it again without")
    if not name.isprintable() or any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in parts):
        raise BadPlace(f"{archive} holds {name!r}, which cannot be a file's name here; rename it")
    return parts


def _write(entry: Entry, path: Path, room: int, archive: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        with path.open("xb") as file:
            while chunk := entry.stream.read(CHUNK_BYTES):
                written += len(chunk)
                if written > room:
                    raise BadPlace(f"{archive} does not fit: the disk of {path.anchor} would be full; free some room")
                file.write(chunk)
    except FileExistsError:
        raise BadPlace(f"{archive} holds {entry.name!r} twice; pack it again without") from None
    return written


def _digest(archive: Path) -> bytes:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _label(archive: Path) -> str:
    name = archive.name.lower()
    ending = next(one for one in ARCHIVE_ENDINGS if name.endswith(one))
    return name.removesuffix(ending)


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """Yield an empty folder on the disk of the buckets; only one process at a time has it, and its remains go."""
    scratch = home / "unpacking"
    scratch.mkdir(parents=True, exist_ok=True)
    with (home / "unpacking.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(scratch)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
