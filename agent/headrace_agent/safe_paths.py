"""Turns relative paths from elsewhere into files below one root, and refuses every other path."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
NAME_BYTES_MAX = 255
"""NAME_MAX of Linux file systems."""


class UnsafePath(Exception):
    """A path would leave its root, or cannot be a file below it."""


def parts_of(relative: str) -> tuple[str, ...]:
    """Return the steps of a plain relative path; raises UnsafePath for any other."""
    parts = tuple(relative.split("/"))
    if relative.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise UnsafePath(f"the path {relative!r} is absolute or has an empty, '.' or '..' step")
    if CONTROL_CHARACTER.search(relative):
        raise UnsafePath(f"the path {relative!r} holds a control character")
    if any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in parts):
        raise UnsafePath(f"the path {relative[:80]!r}... has a step longer than {NAME_BYTES_MAX} bytes")
    return parts


class SafeRoot:
    """A folder below which files are made; no symbolic link below it is ever followed.

    Folders once checked are remembered, so a root belongs to one task that nobody works against meanwhile.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self._checked: set[tuple[str, ...]] = {()}

    def place(self, relative: str) -> Path:
        """Return where the file goes, its folders made. Raises UnsafePath."""
        parts = parts_of(relative)
        self._ensure_folder(parts[:-1], relative)
        path = self.root.joinpath(*parts)
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            raise UnsafePath(f"the path {relative!r} is taken by a {_kind(mode)}")
        return path

    def _ensure_folder(self, parts: tuple[str, ...], relative: str) -> None:
        if parts in self._checked:
            return
        self._ensure_folder(parts[:-1], relative)
        folder = self.root.joinpath(*parts)
        mode = _mode(folder)
        if mode is None:
            folder.mkdir()
        elif not stat.S_ISDIR(mode):
            raise UnsafePath(f"the path {relative!r} goes through {'/'.join(parts)}, which is a {_kind(mode)}")
        self._checked.add(parts)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "special file"
