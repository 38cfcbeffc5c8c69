"""Event loops on which whole runs happen: the machine's own clock, or a virtual clock that never sleeps."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any


class SimulationDeadlock(RuntimeError):
    """Nothing is ready and no timer is set, so a simulated loop could only wait for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` is virtual seconds since `start`, moved on by the next timer and by nothing else.

    Callbacks run inline, in an order that depends on no real time. Threads and sockets do not
    exist here: waiting for one is a deadlock.
    """

    def __init__(self, start: datetime) -> None:
        self.start = start.astimezone(UTC)
        self._elapsed_seconds = 0.0
        super().__init__(_SleeplessSelector(self))
        # A timer is due when time() plus this is past it; the default of a nanosecond is lost in the
        # rounding of a float that has counted months, and the timer would never be due.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return virtual seconds since the start."""
        return self._elapsed_seconds

    def advance(self, seconds: float) -> None:
        """Move the virtual clock on; only the selector has reason to."""
        self._elapsed_seconds += seconds


class _SleeplessSelector(selectors.BaseSelector):
    """Knows files by name only, and answers a wait of n seconds by moving the clock on n seconds."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise SimulationDeadlock(
                f"deadlock at {LoopClock(self._loop).now().isoformat()}: nothing is ready and no timer is set, "
                "so whatever is awaited can never happen"
            )
        if timeout > 0:
            self._loop.advance(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def close(self) -> None:
        self._keys.clear()


class LoopClock:
    """The time of a loop: virtual on a simulated loop, the machine's on any other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last = (-1.0, datetime.min.replace(tzinfo=UTC))

    def now(self) -> datetime:
        """Return the current instant, in UTC and aware of it."""
        if not isinstance(self._loop, SimulatedLoop):
            return datetime.now(UTC)
        elapsed = self._loop.time()
        # Virtual time stands still while callbacks run, and simulations ask for it at every step.
        if self._last[0] != elapsed:
            self._last = (elapsed, self._loop.start + timedelta(seconds=elapsed))
        return self._last[1]

    def monotonic(self) -> float:
        """Return seconds that never run backwards, of no fixed origin."""
        return self._loop.time() if isinstance(self._loop, SimulatedLoop) else time.monotonic()


def simulated_loop(start: datetime) -> SimulatedLoop:
    """Return a loop whose clock begins at `start` and jumps to the next timer whenever nothing is ready.

    Raises SimulationDeadlock out of `run_until_complete` when nothing is ready and no timer is set,
    and ValueError at once for a start that does not know its time zone.
    """
    if start.tzinfo is None:
        raise ValueError("a simulation starts at an instant that knows its time zone")
    return SimulatedLoop(start)
