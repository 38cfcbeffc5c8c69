"""What the parts of one interpreter share: loop, clock, randomness, tokens, and the ways out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

from headrace.local.asl.functions import added_functions, uuid4
from headrace.local.asl.record import Execution
from headrace.local.asl.tokens import Tokens

Json = Any
_T = TypeVar("_T")
Invoke = Callable[[str, Json], Awaitable[Json]]
PutEvents = Callable[[list[dict[str, Json]]], Awaitable[dict[str, Json]]]


class Children(Protocol):
    """Starting and stopping nested executions."""

    def start_child(self, machine: str, name: str | None, given: Json) -> Execution:
        """Start an execution and return its record; a name of None is drawn."""
        ...

    def stop_child(self, child: Execution, cause: str) -> None:
        """Abort an execution that is still open."""
        ...


class Engine:
    """Handed to every part; owns the calls to functions that outlive the state that made them."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], datetime],
        source: random.Random,
        invoke: Invoke,
        put_events: PutEvents,
        children: Children,
    ) -> None:
        self.loop = loop
        self.now = now
        self.random = source
        self.tokens = Tokens(loop, source)
        self.functions: Mapping[str, Callable[..., Json]] = added_functions(source)
        self.children = children
        self._invoke = invoke
        self._put_events = put_events
        self._calls: set[asyncio.Future[Any]] = set()

    def new_id(self) -> str:
        """Return a fresh UUID."""
        return uuid4(self.random)

    def call(self, function: str, payload: Json) -> asyncio.Future[Json]:
        """Invoke a function, independent of who waits: Lambda runs on when a state times out or is stopped."""
        return self._detached(self._invoke(function, payload))

    def publish(self, entries: list[dict[str, Json]]) -> asyncio.Future[dict[str, Json]]:
        """Put events on the bus, independent of who waits."""
        return self._detached(self._put_events(entries))

    def calls(self) -> tuple[asyncio.Future[Any], ...]:
        """Return the calls still running."""
        return tuple(self._calls)

    def _detached(self, awaitable: Awaitable[_T]) -> asyncio.Future[_T]:
        call = asyncio.ensure_future(awaitable, loop=self.loop)
        self._calls.add(call)
        call.add_done_callback(self._over)
        return call

    def _over(self, call: asyncio.Future[Any]) -> None:
        self._calls.discard(call)
        # An exception that nobody waits for any more is the caller's past, not a warning.
        if not call.cancelled():
            call.exception()
