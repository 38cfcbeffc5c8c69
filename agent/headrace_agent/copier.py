"""Copies files by many streams at once, each a thread with its own connection; large files are shared by all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from headrace_agent.dataset import DatasetFile
from headrace_agent.download import RangesRefused, Span
from headrace_agent.fetch import Fetcher, FetchFailed, Stopped
from headrace_agent.http_connection import Connection
from headrace_agent.large_file import RANGED_ABOVE_BYTES, LargeFile
from headrace_agent.reach import OpenBucket
from headrace_agent.s3 import open_bucket
from headrace_agent.safe_paths import UnsafePath
from headrace_agent.stage_state import StagedFile, StagedSpan, StageState
from headrace_agent.stage_tally import StageTally
from headrace_agent.streams import Streams

JOIN_SECONDS = 30.0
FIRST_LOOK_SECONDS = 0.02
"""How often is looked whether a first object has come, which tells how far away they are."""

T = TypeVar("T")


class _Small(NamedTuple):
    wanted: DatasetFile
    target: Path


class _Part(NamedTuple):
    large: LargeFile
    span: Span


class Copier:
    """Copies `files`; `place` gives each path its file, and is called by one thread at a time."""

    def __init__(
        self,
        files: Iterator[DatasetFile],
        place: Callable[[str], Path],
        temporary: Path,
        state: StageState,
        tally: StageTally,
        streams: int,
        *,
        open_store: OpenBucket = open_bucket,
        is_hashed: bool = False,
    ) -> None:
        self._finished: deque[StagedFile] = deque()
        self._spans: deque[StagedSpan] = deque()
        self._place = place
        self._temporary = temporary
        self._state = state
        self._tally = tally
        self._in_ranges = True
        self._is_drained = False
        self._stop = threading.Event()
        self._fetcher = Fetcher(temporary, streams, self._stop, open_store, is_hashed=is_hashed)
        self._pieces = self._all_pieces(files)
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._streams = Streams(streams)
        self._connections: list[Connection] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to copy."""
        self._add_streams()

    def is_over(self, within_seconds: float) -> bool:
        """Wait up to that long, and tell whether all streams have ended. Raises what ended one of them.

        Until then, see to it that there are enough streams.
        """
        has_learned = any(one.bodies for one in self._connections)
        for thread in self._threads:
            thread.join(within_seconds if has_learned else min(within_seconds, FIRST_LOOK_SECONDS))
            if thread.is_alive():
                self._learn()
                self._add_streams()
                return False
        if self._error is not None:
            raise self._error
        return True

    def _learn(self) -> None:
        bodies = sum(one.bodies for one in self._connections)
        if bodies:
            body_seconds = sum(one.body_seconds for one in self._connections) / bodies
            self._streams.delayed(min(one.fastest_answer_seconds for one in self._connections), body_seconds)
        self._streams.came(sum(one.body_bytes for one in self._connections), time.monotonic())

    def _add_streams(self) -> None:
        """Start the streams that are wanted and do not run; those beyond them end by themselves."""
        for number in range(self._streams.wanted):
            if self._is_drained:
                return
            if number == len(self._connections):
                self._connections.append(Connection())
            elif self._threads[number].is_alive():
                continue
            thread = threading.Thread(target=self._copy_some, args=(number,), name="copy", daemon=True)
            self._threads[number : number + 1] = [thread]
            thread.start()

    def take_finished(self) -> tuple[list[StagedFile], list[StagedSpan]]:
        """Return what was finished since the last call; whoever takes it records it."""
        return _all_of(self._finished), _all_of(self._spans)

    def stop(self) -> None:
        """Stop all streams now and wait for them."""
        self._stop.set()
        for connection in self._connections:
            connection.abort()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)

    def _copy_some(self, number: int) -> None:
        connection = self._connections[number]
        try:
            while number < self._streams.wanted and (piece := self._next()) is not None:
                self._copy(connection, piece)
        except Stopped:
            pass
        except BaseException as error:  # raised again by is_over, in the thread that waits
            self._error = self._error or error
            self._stop.set()
        finally:
            connection.close()

    def _next(self) -> _Small | _Part | None:
        with self._lock:
            is_wanted = not self._stop.is_set() and not self._tally.gave_up
            piece = next(self._pieces, None) if is_wanted else None
            self._is_drained = piece is None
            return piece

    def _all_pieces(self, files: Iterator[DatasetFile]) -> Iterator[_Small | _Part]:
        for wanted in files:
            try:
                target = self._place(wanted.path)
                version = self._state.staged_version(wanted, target)
                if version is not None:
                    self._finish(wanted, version)
                elif self._in_ranges and wanted.bytes > RANGED_ABOVE_BYTES:
                    large = LargeFile(wanted, target, self._temporary, self._state)
                    yield from (_Part(large, span) for span in large.missing())
                else:
                    yield _Small(wanted, target)
            except UnsafePath as error:
                self._tally.failures[wanted.path] = str(error)

    def _copy(self, connection: Connection, piece: _Small | _Part) -> None:
        try:
            if isinstance(piece, _Small):
                self._finish(piece.wanted, self._fetcher.fetch(connection, *piece))
            else:
                self._copy_part(connection, *piece)
        except FetchFailed as error:
            wanted = piece.wanted if isinstance(piece, _Small) else piece.large.wanted
            self._tally.failures[wanted.path] = str(error)

    def _copy_part(self, connection: Connection, large: LargeFile, span: Span) -> None:
        trouble: Exception | None = None
        try:
            if large.trouble is None:
                large.received = self._fetcher.fetch_span(connection, large.wanted, large.open, span)
                self._tally.add_bytes(large.count(span))
                self._spans.append(StagedSpan(large.part, span.start))
        except (FetchFailed, RangesRefused, Stopped) as error:
            trouble = error
        if large.is_over(trouble):
            self._end(connection, large)

    def _end(self, connection: Connection, large: LargeFile) -> None:
        """Finish a large file; one whose endpoint knows no ranges, or whose bytes do not match, is read in one go."""
        if isinstance(large.trouble, (FetchFailed, Stopped)):
            raise large.trouble
        self._in_ranges = self._in_ranges and large.trouble is None
        version = large.received.version if large.received else ""
        if large.trouble is not None or not large.put_in_place():
            large.path.unlink()
            version = self._fetcher.fetch(connection, large.wanted, large.target)
        self._finish(large.wanted, version, large.counted_bytes)

    def _finish(self, wanted: DatasetFile, version: str, counted_bytes: int = 0) -> None:
        self._tally.add(wanted.bytes - counted_bytes)
        self._finished.append(StagedFile(wanted, version))


def _all_of(waiting: deque[T]) -> list[T]:
    """Take what waits now; other threads may add meanwhile."""
    return [waiting.popleft() for _ in range(len(waiting))]
