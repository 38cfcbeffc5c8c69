"""How many requests may be under way at once: fewer when the endpoint says it is busy, more as it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOWERED_AT_MOST_EVERY_SECONDS = 1.0
LEAST = 1.0


class Pace:
    """Halves the limit when the endpoint is busy and adds one for each `limit` answers, as TCP does (AIMD).

    Shared by all streams; `clock` gives seconds from any start.
    """

    def __init__(self, streams: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._streams = float(streams)
        self._limit = float(streams)
        self._under_way = 0
        self._clock = clock
        self._lowered_at = -LOWERED_AT_MOST_EVERY_SECONDS
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """Return how many requests may be under way now."""
        return int(self._limit)

    def begin(self) -> None:
        """Wait until one more request may be sent."""
        with self._changed:
            while self._under_way >= self.limit:
                self._changed.wait()
            self._under_way += 1

    def end(self, *, was_busy: bool) -> None:
        """Tell that a request is over, and whether the endpoint was too busy for it."""
        with self._changed:
            self._under_way -= 1
            if was_busy:
                self._lower()
            else:
                self._limit = min(self._streams, self._limit + 1 / self._limit)
            if self._limit < self._streams:
                self._changed.notify_all()
            else:
                self._changed.notify()

    def _lower(self) -> None:
        now = self._clock()
        if now - self._lowered_at >= LOWERED_AT_MOST_EVERY_SECONDS:
            self._lowered_at = now
            self._limit = max(LEAST, self._limit / 2)
