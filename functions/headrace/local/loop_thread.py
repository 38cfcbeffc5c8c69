"""An event loop in a thread of its own, for a program that is not written around one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs `loop` from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        """Begin to run the loop."""
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_seconds: float | None = None) -> T:
        """Do the work on the loop and return its result; never call this on the loop itself.

        Raises TimeoutError, after which the work is cancelled, and whatever the work raises.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_seconds)
        except TimeoutError:
            future.cancel()
            raise

    def cancel_work(self) -> None:
        """Cancel all that waits on the loop, and wait for its end."""
        if self._thread.is_alive():
            self.run(_cancel_others())

    def stop(self) -> None:
        """Stop and close the loop, after `cancel_work`; safe to repeat."""
        self.cancel_work()
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        self.loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
