"""Copies one block device onto another, and reads back what it wrote: the bytes cross the network once."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

BLOCK_BYTES = 4 * 1024 * 1024
STREAMS = 8
LIBC = ctypes.CDLL(None)


class Copied(NamedTuple):
    """How many bytes the source has, and how many of them the target did not hold before."""

    bytes: int
    written_bytes: int


def copy_device(source: str, target: str, flags: int = os.O_DIRECT) -> Copied:
    """Make the target hold the source's bytes; what it holds already is not written again.

    Every block that is written is read back and compared with what came, past the page cache. What came is what was
    sent where the connection checks it, as RDMA does, and TCP when it is told to. Raises OSError.
    """
    with _opened(source, os.O_RDONLY | flags) as read_from, _opened(target, os.O_RDWR | flags) as write_to:
        size_bytes, room_bytes = (os.lseek(one, 0, os.SEEK_END) for one in (read_from, write_to))
        if room_bytes < size_bytes:
            raise OSError(f"{target} has {room_bytes} bytes and {source} {size_bytes}, so it cannot be its copy")
        copying = _Copying(read_from, write_to, size_bytes)
        with ThreadPoolExecutor(STREAMS) as threads:
            written_bytes = sum(threads.map(lambda _: copying.run(), range(STREAMS)))
        os.fsync(write_to)
    return Copied(size_bytes, written_bytes)


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Copying:
    """Gives each stream the next block, until all are done or one stream fails."""

    def __init__(self, source: int, target: int, size_bytes: int) -> None:
        self._source, self._target, self._size_bytes = source, target, size_bytes
        self._starts = itertools.count(0, BLOCK_BYTES)
        self._has_failed = False

    def run(self) -> int:
        """Copy blocks. Return how many bytes were written."""
        came, held = _Block(), _Block()
        written_bytes = 0
        try:
            for start in self._starts:
                if start >= self._size_bytes or self._has_failed:
                    break
                written_bytes += self._copy(came, held, start, min(BLOCK_BYTES, self._size_bytes - start))
        except BaseException:
            self._has_failed = True
            raise
        return written_bytes

    def _copy(self, came: _Block, held: _Block, start: int, count: int) -> int:
        came.read(self._source, start, count)
        held.read(self._target, start, count)
        if came.is_like(held, count):
            return 0
        came.write(self._target, start, count)
        held.read(self._target, start, count)
        if not came.is_like(held, count):
            raise OSError(f"of the {count} bytes from {start} on others were read back than were written")
        return count


class _Block:
    """Memory that begins with a page, as O_DIRECT wants it."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, BLOCK_BYTES)
        self._view = memoryview(self._map)
        self._place = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def read(self, descriptor: int, start: int, count: int) -> None:
        """Fill it from a device. Raises OSError where that ends early."""
        at = 0
        while at < count:
            came = os.preadv(descriptor, [self._view[at:count]], start + at)
            if not came:
                raise OSError(f"only {at} of {count} bytes are there from {start} on")
            at += came

    def write(self, descriptor: int, start: int, count: int) -> None:
        """Write it to a device."""
        at = 0
        while at < count:
            at += os.pwritev(descriptor, [self._view[at:count]], start + at)

    def is_like(self, other: _Block, count: int) -> bool:
        """Tell whether both hold the same bytes: memcmp(3), during which other threads go on."""
        return bool(LIBC.memcmp(ctypes.c_void_p(self._place), ctypes.c_void_p(other._place), count) == 0)
