"""Keeps the agent small: the memory of a machine belongs to its job."""

from __future__ import annotations

import ctypes

M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
"""Both from glibc's malloc.h, see mallopt(3)."""

ARENAS = 2
MAPPED_FROM_BYTES = 256 * 1024


def limit_allocator() -> bool:
    """Let few arenas serve all threads and give large buffers back at once. Return whether the C library knows how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_ARENA_MAX, ARENAS)) and bool(mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES))
