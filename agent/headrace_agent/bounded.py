"""Runs a call for a bounded time only, where the call itself knows no bound."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class OutOfTime(Exception):
    """The call did not return in time; it goes on in a thread that nobody waits for."""


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what the call returns, or raise what it raises; raises OutOfTime when it takes longer."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # raised again below, in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise OutOfTime
    return results[0]
