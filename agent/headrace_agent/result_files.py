"""Looks at the results folder: which files there are, and which must be left out, with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headrace_agent.s3 import check_key

KEY_BYTES_MAX = 1024
"""Longest key that S3 takes."""


class FileState(NamedTuple):
    """One regular file as it is now; `path` is relative."""

    path: str
    bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class Skipped:
    """Something below the results folder that is not saved."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def look(root: Path, prefix: str, skipped: list[Skipped]) -> Iterator[FileState]:
    """Yield all regular files below the root, and add to `skipped` what cannot be saved. No link is followed."""
    for path, found in _walk(os.fspath(root), ""):
        reason = _why_skipped(prefix + path, found.st_mode)
        if reason:
            skipped.append(Skipped(path.encode("utf-8", "replace").decode(), reason))
        else:
            yield FileState(path, found.st_size, found.st_mtime_ns)


def state_of(root: Path, path: str) -> FileState | None:
    """Return a file's present state, or None when it is no regular file any more."""
    try:
        found = (root / path).lstat()
    except OSError:
        return None
    return FileState(path, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _walk(folder: str, relative: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in listed:
        path = f"{relative}{entry.name}"
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield from _walk(entry.path, f"{path}/")
        else:
            yield path, found


def _why_skipped(key: str, mode: int) -> str | None:
    if stat.S_ISLNK(mode):
        return "is a symbolic link, which is never followed"
    if not stat.S_ISREG(mode):
        return "is a special file (pipe, socket or device)"
    try:
        if len(key.encode("utf-8")) > KEY_BYTES_MAX:
            return f"its key would be longer than {KEY_BYTES_MAX} bytes"
        check_key(key)
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except ValueError:
        return "its name holds a character that cannot be part of a key here"
    return None
