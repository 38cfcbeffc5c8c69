"""Makes written data durable without an fsync per file."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)


def sync_file_system(folder: Path) -> None:
    """Write all that the folder's file system has in memory to its disk (syncfs(2)). Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _LIBC.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), f"syncfs failed on {folder}")
    finally:
        os.close(descriptor)
