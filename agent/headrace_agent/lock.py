"""Lets one agent only work in a node folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self


class FolderBusy(Exception):
    """Another agent runs in the folder."""


class FolderLock:
    """Holds `agent.lock` for the life of the process; the kernel lets go of it when the process dies.

    Raises FolderBusy on entry when another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "agent.lock"
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise FolderBusy(f"another agent (process {holder or 'unknown'}) already runs in this folder") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
