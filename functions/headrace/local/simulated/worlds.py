"""Tells timers of the control plane from those of machines, so that one can stand still while the other goes on."""

from __future__ import annotations

import asyncio
import heapq
from contextvars import Context, ContextVar, copy_context
from typing import Any

_IS_MACHINE: ContextVar[bool] = ContextVar("is_machine", default=False)


def machine_world() -> Context:
    """Return a context in which whatever is started belongs to machines, which no outage of ours stops."""
    context = copy_context()
    context.run(_IS_MACHINE.set, True)
    return context


def plane_world() -> Context:
    """Return a context in which whatever is started belongs to the control plane."""
    context = copy_context()
    context.run(_IS_MACHINE.set, False)
    return context


def hold_plane(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Put off every timer that the control plane has set by that long: for it, the time between does not happen."""
    timers: list[Any] = loop._scheduled  # type: ignore[attr-defined]  # noqa: SLF001 - the standard library's heap
    for timer in timers:
        if not timer.cancelled() and not timer._context.get(_IS_MACHINE, False):  # noqa: SLF001 - the same
            timer._when += seconds  # noqa: SLF001 - the same
    heapq.heapify(timers)
