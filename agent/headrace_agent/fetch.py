"""Copies one object into one file: into a temporary file, checked, then renamed into place; tried several times."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from headrace_agent.dataset import DatasetFile
from headrace_agent.download import ObjectChanged, RangesRefused, Source, Unlike, download
from headrace_agent.etags import is_encrypted_by_key_service, looks_like_md5, md5_of
from headrace_agent.s3 import S3_ERRORS, check_key, open_bucket, plain_etag
from headrace_agent.text import first_line

if TYPE_CHECKING:
    from obstore.store import S3Store

LOG = logging.getLogger(__name__)
FILE_MODE = 0o444
ATTEMPTS = 6
FIRST_WAIT_SECONDS = 0.2
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FULL = "this machine's volume is full; ask for more storage"
ARCHIVED = "InvalidObjectState"
"""What S3 calls the refusal to read an object whose class must be restored first; its status is 403, too."""
WHOLE_OBJECT_SECONDS = 6 * 3600.0
"""For one request; silence within it is bounded where its pieces are read."""


class FetchFailed(Exception):
    """An object cannot become its file; the text says why."""


class Fetcher:
    """Copies objects, at most `streams` requests at a time; lives in one event loop."""

    def __init__(
        self,
        temporary: Path,
        streams: int = 16,
    ) -> None:
        self._temporary = temporary
        self._places = asyncio.Semaphore(streams)
        self._in_ranges = True
        self._chance = random.Random()  # noqa: S311 - spreads retries, hides nothing
        self._stores: dict[str, S3Store] = {}

    async def fetch(self, wanted: DatasetFile, target: Path) -> None:
        """Make `target` hold exactly the object's bytes. Raises FetchFailed when that cannot be."""
        source = self._source(wanted)
        failure = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(self._chance.random() * FIRST_WAIT_SECONDS * 2.0**attempt)
            try:
                return await self._fetch_once(source, target)
            except (ObjectChanged, PermissionDeniedError, UnauthenticatedError, FileNotFoundError) as error:
                raise FetchFailed(f"{wanted.source}: {_final_reason(error)}") from error
            except RangesRefused:
                LOG.info("%s does not answer ranges; its objects are read whole", wanted.source.bucket)
                self._in_ranges = False
            except (Unlike, *S3_ERRORS) as error:
                if getattr(error, "errno", None) in DISK_FULL:
                    raise FetchFailed(f"{wanted.source}: {FULL}: {first_line(error)}") from error
                failure = first_line(error)
        raise FetchFailed(f"{wanted.source}: could not be read in {ATTEMPTS} attempts; the last said: {failure}")

    def _source(self, wanted: DatasetFile) -> Source:
        try:
            check_key(wanted.source.key)
        except ValueError as error:
            raise FetchFailed(str(error)) from error
        bucket = wanted.source.bucket
        if bucket not in self._stores:
            self._stores[bucket] = open_bucket(bucket, request_seconds=WHOLE_OBJECT_SECONDS)
        return Source(self._stores[bucket], wanted.source.key, wanted.bytes, plain_etag(wanted.etag))

    async def _fetch_once(self, source: Source, target: Path) -> None:
        temporary = self._temporary / secrets.token_hex(8)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            try:
                md5 = await download(source, descriptor, self._places, in_ranges=self._in_ranges)
            finally:
                os.close(descriptor)
            await _check_md5(source, temporary, md5)
            temporary.rename(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


async def _check_md5(source: Source, temporary: Path, md5: str | None) -> None:
    if not looks_like_md5(source.etag):
        return
    found = md5 or await asyncio.to_thread(md5_of, temporary)
    if found == source.etag:
        return
    if not await asyncio.to_thread(is_encrypted_by_key_service, source.store, source.key):
        raise Unlike(f"the bytes that came have MD5 {found} and the object's ETag is {source.etag}")


def _final_reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error}" if error.filename else "it is no longer there"
    if isinstance(error, ObjectChanged):
        return str(error)
    if ARCHIVED in str(error):
        return "it is archived; restore it first"
    return "this machine's role may not read it"
