"""Decides how many streams copy at once: as many as the line's delay asks for, and as still bring more bytes."""

from __future__ import annotations

FIRST = 8
NEAR_SECONDS = 0.002
"""Bodies that come in less time than this are taken to need it."""

LOOK_SECONDS = 0.5
GAIN = 1.2
"""Twice as many streams are kept when they bring this much more; S3 gives each about 90 MB/s, whatever the line."""

REST_SECONDS = 10.0


class Streams:
    """How many streams are wanted, `FIRST` to begin with, never more than `most`; times are seconds from any start."""

    def __init__(self, most: int) -> None:
        self.wanted = min(FIRST, most)
        self._most = most
        self._kept = self.wanted
        self._rate_before: float | None = None
        self._looked_at = 0.0
        self._bytes_then: int | None = None
        self._rests_until = 0.0

    def delayed(self, answer_seconds: float, body_seconds: float) -> None:
        """Learn how long an answer lets wait at least, and how long a body takes: a stream is idle in between."""
        self._kept = max(
            self._kept, min(self._most, int(FIRST * (1 + answer_seconds / max(body_seconds, NEAR_SECONDS))))
        )
        self.wanted = max(self.wanted, self._kept)

    def came(self, total_bytes: int, now: float) -> None:
        """Learn how many bytes have come in all: now and then, twice as many streams are tried."""
        if self._bytes_then is None:
            self._looked_at, self._bytes_then = now, total_bytes
        elif now - self._looked_at >= LOOK_SECONDS:
            rate = (total_bytes - self._bytes_then) / (now - self._looked_at)
            self._looked_at, self._bytes_then = now, total_bytes
            self._judge(rate, now)

    def _judge(self, rate: float, now: float) -> None:
        if self._rate_before is None:
            if now >= self._rests_until:
                self._try(rate)
        elif rate >= GAIN * self._rate_before:
            self._kept = self.wanted
            self._try(rate)
        else:
            self.wanted, self._rate_before = self._kept, None
            self._rests_until = now + REST_SECONDS

    def _try(self, rate: float) -> None:
        self._rate_before = rate
        self.wanted = min(self._most, 2 * self._kept)
