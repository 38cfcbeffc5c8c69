"""When a failed state is tried again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Sequence

from headrace.local.asl.definition import Retrier
from headrace.local.asl.errors import StateFailure


def delay_seconds(retrier: Retrier, attempt: int, source: random.Random) -> float:
    """Return the wait before retry number `attempt` (0 is the first), in seconds.

    interval * backoff^attempt, capped by MaxDelaySeconds; FULL jitter then draws from 0 to that.
    Source: docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html.
    """
    limit = float("inf") if retrier.max_delay is None else retrier.max_delay
    try:
        delay = min(limit, retrier.interval * retrier.backoff_rate**attempt)
    except OverflowError:
        delay = limit
    return source.uniform(0, delay) if retrier.full_jitter else delay


class Attempts:
    """How often each retrier of one visit to a state was used; `total` is what RetryCount shows."""

    def __init__(self, retriers: Sequence[Retrier], source: random.Random) -> None:
        self._retriers = retriers
        self._used = [0] * len(retriers)
        self._source = source

    @property
    def total(self) -> int:
        """Return retries so far in this visit."""
        return sum(self._used)

    def next_delay(self, failure: StateFailure) -> float | None:
        """Return seconds until the next try, or None when it must not be tried again.

        Only the first retrier that matches counts, used up or not, as AWS scans them.
        """
        for at, retrier in enumerate(self._retriers):
            if failure.matches(retrier.errors):
                return self._use(at)
        return None

    def _use(self, at: int) -> float | None:
        if self._used[at] >= self._retriers[at].max_attempts:
            return None
        delay = delay_seconds(self._retriers[at], self._used[at], self._source)
        self._used[at] += 1
        return delay
