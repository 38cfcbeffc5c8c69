"""Lets a function stand still between two of its calls while the world goes on: it runs in a thread, in turns."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable
from contextvars import copy_context
from threading import Semaphore, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Abandoned(BaseException):
    """The simulation ended while the function stood still; nothing in it can catch that."""


class PausableWork(Generic[T]):
    """Work that may call `pause`; either it runs or the loop does, never both, so that a seed stays a run."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> None:
        self._loop = loop
        self._work = work
        self._works_turn, self._loops_turn = Semaphore(0), Semaphore(0)
        self._pause_seconds: float | None = None
        self._is_abandoned = False
        self._answers: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def pause(self, seconds: float) -> None:
        """Stand still that long; to be called by the work. Raises Abandoned."""
        self._pause_seconds = seconds
        self._loops_turn.release()
        self._works_turn.acquire()
        if self._is_abandoned:
            raise Abandoned

    async def result(self) -> T:
        """Do the work and return what it returns. Raises what it raises."""
        self._thread.start()
        try:
            while (seconds := self._take_turn()) is not None:
                await asyncio.sleep(seconds)
                self._works_turn.release()
        except BaseException:
            self._abandon()
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _take_turn(self) -> float | None:
        """Let the work run; return for how long it pauses, or None when it is done."""
        self._loops_turn.acquire()
        seconds, self._pause_seconds = self._pause_seconds, None
        return seconds

    def _abandon(self) -> None:
        self._is_abandoned = True
        self._works_turn.release()
        self._thread.join()

    def _run(self) -> None:
        # Ports ask for the running loop to learn whether they are on it; while the work runs, it is.
        events._set_running_loop(self._loop)  # noqa: SLF001 - the event loop's own hook
        try:
            self._answers.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            events._set_running_loop(None)  # noqa: SLF001 - the same
            self._loops_turn.release()
