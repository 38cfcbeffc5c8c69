"""Copies one object into one file: into a temporary file, checked, then renamed into place; tried several times."""

from __future__ import annotations

import errno
import itertools
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headrace_agent.dataset import DatasetFile
from headrace_agent.download import Busy, ObjectUnreadable, Received, Source, Span, Target, Unlike, download
from headrace_agent.http_connection import Connection
from headrace_agent.pace import Pace
from headrace_agent.reach import OpenBucket
from headrace_agent.s3 import S3_ERRORS, S3Address, check_key, open_bucket, plain_etag
from headrace_agent.text import first_line

if TYPE_CHECKING:
    from obstore.store import S3Store

FILE_MODE = 0o444
ATTEMPTS = 10
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 20.0
BUSY_SECONDS = 900.0
"""How long one object is asked for while S3 says that it is busy: it divides a busy prefix within minutes."""
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FULL = "this machine's volume is full; ask for more storage"

T = TypeVar("T")


class FetchFailed(Exception):
    """An object cannot become its file; the text says why."""


class Stopped(Exception):
    """The copy was told to stop."""


class Fetcher:
    """Copies objects; shared by all streams, each of which brings its own connection."""

    def __init__(
        self,
        temporary: Path,
        streams: int,
        stop: threading.Event,
        open_store: OpenBucket = open_bucket,
        *,
        is_hashed: bool,
    ) -> None:
        self._open = open_store
        self._temporary = os.fspath(temporary / os.urandom(8).hex())
        self._numbers = itertools.count()
        self._pace = Pace(streams)
        self._stop = stop
        self._is_hashed = is_hashed
        self._chance = random.Random()  # noqa: S311 - spreads retries, hides nothing
        self._stores: dict[str, S3Store] = {}

    def source(self, wanted: DatasetFile) -> Source:
        """Return the object as it was listed. Raises FetchFailed for a key that cannot be addressed."""
        try:
            check_key(wanted.source.key)
        except ValueError as error:
            raise FetchFailed(str(error)) from error
        bucket = wanted.source.bucket
        if bucket not in self._stores:
            self._stores[bucket] = self._open(bucket)
        return Source(self._stores[bucket], wanted.source.key, wanted.bytes, plain_etag(wanted.etag), self._is_hashed)

    def fetch(self, connection: Connection, wanted: DatasetFile, target: Path) -> str:
        """Make `target` hold exactly the object's bytes. Return its version id, if it has one.

        Raises FetchFailed when that cannot be, Stopped when told to stop.
        """
        source = self.source(wanted)
        return self._persist(wanted.source, lambda: self._fetch_once(connection, source, target))

    def fetch_span(self, connection: Connection, wanted: DatasetFile, target: Target, span: Span) -> Received:
        """Write one span of the object into the file. Raises FetchFailed, Stopped, RangesRefused."""
        source = self.source(wanted)
        return self._persist(wanted.source, lambda: download(connection, source, target, span))

    def _persist(self, address: S3Address, once: Callable[[], T]) -> T:
        failures, busy, since, said = 0, 0, time.monotonic(), ""
        while failures < ATTEMPTS and (not busy or time.monotonic() - since < BUSY_SECONDS):
            if failures + busy:
                self._rest(failures + busy)
            try:
                return self._paced(once)
            except ObjectUnreadable as error:
                raise FetchFailed(f"{address}: {error}") from error
            except Busy as error:
                busy, said = busy + 1, str(error)
            except (Unlike, *S3_ERRORS) as error:
                if getattr(error, "errno", None) in DISK_FULL:
                    raise FetchFailed(f"{address}: {FULL}: {first_line(error)}") from error
                failures, said = failures + 1, first_line(error)
            if self._stop.is_set():
                raise Stopped
        raise FetchFailed(f"{address}: could not be read in {failures + busy} attempts; the last said: {said}")

    def _paced(self, once: Callable[[], T]) -> T:
        self._pace.begin()
        was_busy = False
        try:
            return once()
        except Busy:
            was_busy = True
            raise
        finally:
            self._pace.end(was_busy=was_busy)

    def _rest(self, attempt: int) -> None:
        longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(attempt, 10))
        if self._stop.wait(self._chance.random() * longest):
            raise Stopped

    def _fetch_once(self, connection: Connection, source: Source, target: Path) -> str:
        temporary = f"{self._temporary}-{next(self._numbers)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            try:
                received = download(connection, source, Target(descriptor))
            finally:
                os.close(descriptor)
            check_md5(source, received.md5)
            os.rename(temporary, target)  # noqa: PTH104 - a path object costs more than the call
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return received.version


def check_md5(source: Source, md5: str | None) -> None:
    """Raise Unlike when an MD5 is known and is not the object's."""
    if md5 is not None and md5 != source.etag:
        raise Unlike(f"the bytes that came have MD5 {md5} and the object's ETag is {source.etag}")
