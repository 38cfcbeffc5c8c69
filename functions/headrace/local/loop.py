"""Event loops on which whole runs happen: the machine's own clock, or a virtual clock that never sleeps."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any

TIMER_SLACK_SECONDS = 1e-6
"""A timer this little ahead is due: what floats that have counted months round away must not keep it waiting."""


class SimulationDeadlock(RuntimeError):
    """Nothing is ready and no timer is set, so a simulated loop could only wait for ever."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop whose `time()` is virtual seconds since `start`, moved on by the next timer and by nothing else.

    Callbacks run inline, in an order that depends on no real time. Threads and sockets do not
    exist here: waiting for one is a deadlock. Simulations by the thousand live in this loop, so it asks no selector
    and looks for none of the mistakes that the standard loop's debug mode finds.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self.start = start.astimezone(UTC)
        self._elapsed_seconds = 0.0

    def time(self) -> float:
        """Return virtual seconds since the start."""
        return self._elapsed_seconds

    def advance(self, seconds: float) -> None:
        """Move the virtual clock on."""
        self._elapsed_seconds += seconds

    def call_soon(  # type: ignore[override]  # the standard library's stubs tie the arguments' types to the callback
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run the callback after those that are ready."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]  # the same
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run the callback at that virtual time."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        return timer

    def _run_once(self) -> None:
        """Run what is ready now, after a leap to the next timer when nothing is; `run_forever` calls this."""
        ready, timers = self._ready, self._scheduled
        while timers and timers[0].cancelled():
            heapq.heappop(timers)
        if not ready and not self._stopping:
            self._leap()
        due = self._elapsed_seconds + TIMER_SLACK_SECONDS
        while timers and timers[0].when() < due:
            ready.append(heapq.heappop(timers))
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 - as the standard loop does

    def _leap(self) -> None:
        if not self._scheduled:
            raise SimulationDeadlock(
                f"deadlock at {LoopClock(self).now().isoformat()}: nothing is ready and no timer is set, "
                "so whatever is awaited can never happen"
            )
        self.advance(max(0.0, self._scheduled[0].when() - self._elapsed_seconds))


class LoopClock:
    """The time of a loop: virtual on a simulated loop, the machine's on any other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._simulated = loop if isinstance(loop, SimulatedLoop) else None
        self._last = (-1.0, datetime.min.replace(tzinfo=UTC))

    def now(self) -> datetime:
        """Return the current instant, in UTC and aware of it."""
        if self._simulated is None:
            return datetime.now(UTC)
        elapsed = self._simulated.time()
        # Virtual time stands still while callbacks run, and simulations ask for it at every step.
        if self._last[0] != elapsed:
            self._last = (elapsed, self._simulated.start + timedelta(seconds=elapsed))
        return self._last[1]

    def monotonic(self) -> float:
        """Return seconds that never run backwards, of no fixed origin."""
        return time.monotonic() if self._simulated is None else self._simulated.time()


def simulated_loop(start: datetime) -> SimulatedLoop:
    """Return a loop whose clock begins at `start` and jumps to the next timer whenever nothing is ready.

    Raises SimulationDeadlock out of `run_until_complete` when nothing is ready and no timer is set,
    and ValueError at once for a start that does not know its time zone.
    """
    if start.tzinfo is None:
        raise ValueError("a simulation starts at an instant that knows its time zone")
    return SimulatedLoop(start)
