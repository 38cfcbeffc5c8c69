"""One large object on its way into one file: its spans come in any order, by many streams, and survive a restart."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from headrace_agent.dataset import DatasetFile
from headrace_agent.download import Received, Span, Target
from headrace_agent.etags import md5_of
from headrace_agent.s3 import plain_etag
from headrace_agent.stage_state import StageState

RANGED_ABOVE_BYTES = 32 * 1024 * 1024
SPAN_BYTES = 32 * 1024 * 1024
FILE_MODE = 0o444


class LargeFile:
    """The file under its temporary name, `part`; spans recorded in the state are not asked for again."""

    def __init__(self, wanted: DatasetFile, target: Path, temporary: Path, state: StageState) -> None:
        self.wanted = wanted
        self.target = target
        # With the size of its spans, since an agent of another release may go on with what this one recorded.
        identity = f"{wanted.source}\n{wanted.path}\n{wanted.etag}\n{SPAN_BYTES}"
        self.part = hashlib.sha256(identity.encode()).hexdigest()[:32]
        self.path = temporary / self.part
        self.trouble: Exception | None = None
        self.received: Received | None = None
        self.counted_bytes = 0
        descriptor, known = self._open(state)
        self.open = Target(descriptor, threading.Lock())
        self._missing = [start for start in range(0, wanted.bytes, SPAN_BYTES) if start not in known] or [0]
        self._left = len(self._missing)
        self._lock = threading.Lock()

    def missing(self) -> Iterator[Span]:
        """Yield the spans that are to come; one of those that are there already when only the end is left to be done.

        An answer must come in any case: only it tells what the ETag is.
        """
        for start in self._missing:
            yield Span(start, min(start + SPAN_BYTES, self.wanted.bytes))

    def count(self, span: Span) -> int:
        """Count a span that came, and return its bytes."""
        with self._lock:
            self.counted_bytes += span.end - span.start
        return span.end - span.start

    def is_over(self, trouble: Exception | None) -> bool:
        """Count one of `missing` as over, for good or with trouble. Return whether it was the last, and close then."""
        with self._lock:
            self.trouble = self.trouble or trouble
            self._left -= 1
            if not self._left:
                os.close(self.open.descriptor)
            return not self._left

    def put_in_place(self) -> bool:
        """Give the file its name, unless its bytes must match the ETag and do not. Return whether it has it."""
        must_match = self.received is not None and self.received.must_match_etag
        if must_match and md5_of(self.path) != plain_etag(self.wanted.etag):
            return False
        self.path.chmod(FILE_MODE)
        self.path.rename(self.target)
        return True

    def _open(self, state: StageState) -> tuple[int, frozenset[int]]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        known = state.spans(self.part)
        descriptor = os.open(self.path, flags, 0o600)
        if os.fstat(descriptor).st_size == self.wanted.bytes:
            return descriptor, known
        state.forget_spans(self.part)
        os.ftruncate(descriptor, self.wanted.bytes)
        return descriptor, frozenset()
