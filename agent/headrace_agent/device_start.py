"""Reads the start of a device, where marks and superblocks are, as other hosts see it too."""

from __future__ import annotations

import os


def first_bytes(device: str, count: int) -> bytes:
    """Return the start of a device as it is there now, past the page cache, which does not see other hosts' writes."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(descriptor, count, 0)
    finally:
        os.close(descriptor)
