"""Reads one object's bytes into an open file, in ranges when it is large, holding little of it in memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

import obstore
from obstore.exceptions import GenericError

from headrace_agent.etags import looks_like_md5
from headrace_agent.s3 import plain_etag

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult
    from obstore.store import S3Store

RANGED_ABOVE_BYTES = 32 * 1024 * 1024
RANGE_BYTES = 8 * 1024 * 1024
PIECE_BYTES = 1024 * 1024
"""How much of a body is held in memory per request under way."""

IN_THREAD_ABOVE_BYTES = 256 * 1024
SILENCE_SECONDS = 90.0
"""How long an answer, or the next piece of one, may take; the whole of a large object may take much longer."""

NO_RANGES = "non-partial response when range requested"
"""What obstore says of a 200 where S3 answers 206, for example by `rclone serve s3` 1.75."""


class Unlike(Exception):
    """The bytes read are not the object's; reading again may help."""


class ObjectChanged(Exception):
    """The object is not the one that was listed; reading again cannot help."""


class RangesRefused(Exception):
    """The endpoint does not answer parts of an object as S3 does; it may still answer whole ones."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class Source(NamedTuple):
    """One object as it was listed; an empty ETag matches any."""

    store: S3Store
    key: str
    bytes: int
    etag: str


async def download(source: Source, descriptor: int, places: asyncio.Semaphore, *, in_ranges: bool) -> str | None:
    """Write the object's bytes to the descriptor, each request in one of the places.

    Return their MD5 in hexadecimal where the ETag claims to be one, but None for an object read out of order. Raises
    Unlike, ObjectChanged, RangesRefused, and what obstore raises.
    """
    if not in_ranges or source.bytes <= RANGED_ABOVE_BYTES:
        md5 = hashlib.md5(usedforsecurity=False) if looks_like_md5(source.etag) else None
        async with places:
            await _copy(source, descriptor, 0, source.bytes, md5)
        return md5.hexdigest() if md5 else None
    try:
        async with asyncio.TaskGroup() as group:
            for start in range(0, source.bytes, RANGE_BYTES):
                group.create_task(_copy_range(source, descriptor, start, places))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return None


async def _copy_range(source: Source, descriptor: int, start: int, places: asyncio.Semaphore) -> None:
    async with places:
        await _copy(source, descriptor, start, min(start + RANGE_BYTES, source.bytes), None)


async def _copy(source: Source, descriptor: int, start: int, end: int, digest: _Digest | None) -> None:
    answer = await _ask(source, start, end)
    _check_listed(source, plain_etag(answer.meta["e_tag"]), answer.meta["size"])
    pieces = aiter(answer.stream(PIECE_BYTES))
    offset = start
    while data := await asyncio.wait_for(anext(pieces, b""), SILENCE_SECONDS):
        if offset + len(data) > end:
            raise Unlike(f"more than the {end - start} bytes asked for came")
        await _store(descriptor, bytes(data), offset, digest)
        offset += len(data)
    if offset != end:
        raise Unlike(f"{offset - start} of {end - start} bytes came")


async def _ask(source: Source, start: int, end: int) -> GetResult:
    options: GetOptions = {} if (start, end) == (0, source.bytes) else {"range": (start, end)}
    try:
        return await asyncio.wait_for(obstore.get_async(source.store, source.key, options=options), SILENCE_SECONDS)
    except GenericError as error:
        if options and NO_RANGES in str(error):
            raise RangesRefused(str(error)) from error
        raise


def _check_listed(source: Source, etag: str, size_bytes: int) -> None:
    if source.etag and etag and etag != source.etag:
        raise ObjectChanged(f"it changed since it was listed (ETag {source.etag}, now {etag})")
    if size_bytes != source.bytes:
        raise ObjectChanged(f"it changed since it was listed ({source.bytes} bytes, now {size_bytes})")


async def _store(descriptor: int, data: bytes, offset: int, digest: _Digest | None) -> None:
    if len(data) <= IN_THREAD_ABOVE_BYTES:
        _write(descriptor, data, offset, digest)
        return
    writing = asyncio.get_running_loop().run_in_executor(None, _write, descriptor, data, offset, digest)
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        # The descriptor is closed next, and its number may be another file's before the thread is done with it.
        await asyncio.wait([writing])
        raise


def _write(descriptor: int, data: bytes, offset: int, digest: _Digest | None) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
    if digest:
        digest.update(data)
