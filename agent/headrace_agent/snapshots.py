"""Freezes a file for the time of its upload by sharing its blocks (XFS reflink), where the file system can."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOG = logging.getLogger(__name__)
FICLONE = 0x40049409
"""Makes a file share the blocks of another, copied when one of them is written: ioctl_ficlone(2)."""

CANNOT = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.EXDEV, errno.ENOTTY, errno.EPERM})
"""What file systems without reflinks answer, or those that the folder does not share with the file."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Snapshot:
    """Where the bytes to upload are; `is_frozen` when no writer can change them any more."""

    path: Path
    is_frozen: bool


class Snapshots:
    """Snapshots kept in one folder, on the file system of the results, which is emptied first."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._folder = folder
        self._can_clone = True

    @contextmanager
    def of(self, root: Path, relative: str) -> Iterator[Snapshot]:
        """Yield a snapshot of the file below the root, or the opened file itself where there are no reflinks.

        Raises OSError when the file cannot be read, for example because it or a folder became a symbolic link: the
        job may change what the agent, which may read more than the job, has looked at.
        """
        source = open_beneath(root, relative)
        try:
            frozen = self._clone(source) if self._can_clone else None
            try:
                yield Snapshot(frozen or Path(f"/proc/self/fd/{source}"), is_frozen=frozen is not None)
            finally:
                if frozen is not None:
                    frozen.unlink()
        finally:
            os.close(source)

    def _clone(self, source: int) -> Path | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        clone = self._folder / secrets.token_hex(8)
        target = os.open(clone, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.ioctl(target, FICLONE, source)
        except OSError as error:
            clone.unlink()
            self._can_clone = error.errno not in CANNOT
            LOG.info("no reflink (%s): a result that is written while it is uploaded is uploaded again", error)
            return None
        finally:
            os.close(target)
        return clone


def open_beneath(root: Path, relative: str) -> int:
    """Open a file below the root for reading, through no symbolic link, and return its descriptor. Raises OSError."""
    *folders, name = relative.split("/")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, FOLDER, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
