"""The event history of one execution, in the shapes of GetExecutionHistory, held to its quota of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from headrace.local.asl.errors import RUNTIME, StateFailure
from headrace.local.asl.limits import HISTORY_EVENTS

Json = Any
Event = dict[str, Json]
_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"})


@lru_cache(maxsize=256)
def timestamp(instant: datetime) -> str:
    """Return the instant as Step Functions writes it: UTC, milliseconds, a Z."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class History:
    """Events in order, numbered from 1; `log` receives each as it happens."""

    def __init__(self, arn: str, now: Callable[[], datetime], log: Callable[[Event], None] | None) -> None:
        self.events: list[Event] = []
        self._arn = arn
        self._now = now
        self._log = log

    def add(self, kind: str, details: Mapping[str, Json] | None = None, details_name: str = "") -> int:
        """Record an event and return its number.

        Raises StateFailure(States.Runtime) instead of recording number 25,000, unless that one ends
        the execution: on AWS the failure itself is the last event (floci-io/floci issue 2734).
        """
        number = len(self.events) + 1
        if self.events and self.events[-1]["type"] in _ENDS:
            # What a stopped execution was about to record is not part of it any more.
            return number - 1
        if number >= HISTORY_EVENTS and kind not in _ENDS:
            raise StateFailure(
                RUNTIME, f"The execution reached the maximum number of history events ({HISTORY_EVENTS})."
            )
        # AWS links the first state, and a time-out, to nothing: both have 0 before them.
        before = 0 if number <= 2 or kind == "ExecutionTimedOut" else number - 1  # noqa: PLR2004
        event: Event = {"id": number, "previousEventId": before, "timestamp": timestamp(self._now()), "type": kind}
        if details is not None:
            event[f"{details_name or kind[0].lower() + kind[1:]}EventDetails"] = details
        self.events.append(event)
        if self._log is not None:
            self._log({"executionArn": self._arn, **event})
        return number
