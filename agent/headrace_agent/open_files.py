"""Knows which files a set of processes holds open for writing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


def open_for_writing(process_ids: Iterable[int]) -> frozenset[str]:
    """Return the paths of all files that the processes may write to through an open descriptor."""
    return frozenset(path for pid in process_ids for path in _written_by(pid))


def _written_by(pid: int) -> list[str]:
    folder = PROC / str(pid) / "fd"
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208 - names are all that is needed, of many entries
    except OSError:
        return []
    return [path for number in descriptors if (path := _written_path(pid, number))]


def _written_path(pid: int, number: str) -> str | None:
    try:
        path = os.readlink(PROC / str(pid) / "fd" / number)  # noqa: PTH115 - the text may be no path at all
        if not path.startswith("/"):
            return None
        flags = (PROC / str(pid) / "fdinfo" / number).read_text().split("flags:", 1)[1].split(None, 1)[0]
    except (OSError, IndexError):
        return None
    return path if int(flags, 8) & os.O_ACCMODE else None
