"""Task tokens: who may complete, fail or keep alive a waiting task, and what a late caller is told."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

from headrace.local.asl.api_errors import (
    InvalidOutput,
    InvalidToken,
    TaskDoesNotExist,
    TaskTimedOut,
    ValidationException,
)
from headrace.local.asl.errors import StateFailure, heartbeat_missed
from headrace.local.asl.limits import CAUSE_CHARACTERS, ERROR_CHARACTERS, PAYLOAD_BYTES
from headrace.local.asl.payloads import encode, size_bytes

Json = Any
_FORM = re.compile(r"[0-9a-f]{96}")


class Waiting:
    """One attempt of one task that waits for its token; `answer` becomes an output or a StateFailure."""

    def __init__(self, token: str, loop: asyncio.AbstractEventLoop) -> None:
        self.token = token
        self.answer: asyncio.Future[Json | StateFailure] = loop.create_future()
        self._loop = loop
        self._heartbeat_seconds: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def expect_heartbeats(self, every_seconds: float) -> None:
        """Fail the task unless it is said to be alive at least that often, from now on."""
        self._heartbeat_seconds = every_seconds
        self.beat()

    def beat(self) -> None:
        """Start the heartbeat's interval again."""
        if self._heartbeat_seconds is not None:
            self._stop_timer()
            self._timer = self._loop.call_later(self._heartbeat_seconds, self.settle, heartbeat_missed())

    def settle(self, answer: Json | StateFailure) -> None:
        """Give the answer, once."""
        self._stop_timer()
        if not self.answer.done():
            self.answer.set_result(answer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Tokens:
    """Every token ever given out by one interpreter."""

    def __init__(self, loop: asyncio.AbstractEventLoop, source: random.Random) -> None:
        self._loop = loop
        self._source = source
        self._waiting: dict[str, Waiting] = {}
        self._over: set[str] = set()

    def open(self) -> Waiting:
        """Return a new waiting task with a token never used before."""
        waiting = Waiting(f"{self._source.getrandbits(384):096x}", self._loop)
        self._waiting[waiting.token] = waiting
        return waiting

    def close(self, waiting: Waiting) -> None:
        """Forget the task; its token answers TaskTimedOut from now on."""
        waiting.settle(None)
        self._over.add(waiting.token)
        self._waiting.pop(waiting.token, None)

    def succeed(self, token: str, output: Json) -> None:
        """Complete the task. Raises InvalidOutput, and what `_find` raises."""
        try:
            too_large = size_bytes(encode(output)) > PAYLOAD_BYTES
        except (TypeError, ValueError) as error:
            raise InvalidOutput(f"the output is not JSON: {error}") from error
        if too_large:
            raise InvalidOutput(f"the output is larger than {PAYLOAD_BYTES} bytes")
        self._settle(token, output)

    def fail(self, token: str, error: str, cause: str) -> None:
        """Fail the task under that error name. Raises ValidationException, and what `_find` raises."""
        if len(error) > ERROR_CHARACTERS or len(cause) > CAUSE_CHARACTERS:
            raise ValidationException(f"error is at most {ERROR_CHARACTERS}, cause {CAUSE_CHARACTERS} characters")
        self._settle(token, StateFailure(error, cause))

    def beat(self, token: str) -> None:
        """Say that the task is alive. Raises what `_find` raises."""
        self._find(token).beat()

    def _settle(self, token: str, answer: Json | StateFailure) -> None:
        self._find(token).settle(answer)

    def _find(self, token: str) -> Waiting:
        """Return the task. Raises InvalidToken, TaskDoesNotExist, or TaskTimedOut for one that is over."""
        if not _FORM.fullmatch(token):
            raise InvalidToken("Invalid Token: 'Invalid token'")
        waiting = self._waiting.get(token)
        if waiting is None and token not in self._over:
            raise TaskDoesNotExist("Task does not exist")
        if waiting is None or waiting.answer.done():
            raise TaskTimedOut
        return waiting
