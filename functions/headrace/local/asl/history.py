"""The event history of one execution, in the shapes of GetExecutionHistory, held to its quota of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.local.asl.errors import RUNTIME, StateFailure
from headrace.local.asl.limits import HISTORY_EVENTS

Json = Any
Event = dict[str, Json]
_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"})
_NO_NAMES: Mapping[str, Json] = {}


@lru_cache(maxsize=256)
def timestamp(instant: datetime) -> str:
    """Return the instant as Step Functions writes it: UTC, milliseconds, a Z."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Record(NamedTuple):
    """An event as it is kept: few histories of a simulation are ever asked for, so their shapes are made then."""

    kind: str
    at: datetime
    details: Mapping[str, Json] | None
    details_name: str
    names: Mapping[str, Json]


class History:
    """Events in order, numbered from 1; `log` receives each as it happens."""

    def __init__(self, arn: str, now: Callable[[], datetime], log: Callable[[Event], None] | None) -> None:
        self._records: list[_Record] = []
        self._is_over = False
        self._arn = arn
        self._now = now
        self._log = log

    @property
    def events(self) -> list[Event]:
        """The events so far, in the shapes of GetExecutionHistory."""
        return [self._event(number) for number in range(1, len(self._records) + 1)]

    def add(
        self,
        kind: str,
        details: Mapping[str, Json] | None = None,
        details_name: str = "",
        names: Mapping[str, Json] = _NO_NAMES,
    ) -> int:
        """Record an event and return its number; `names` come first among its details, none of which may change.

        Raises StateFailure(States.Runtime) instead of recording number 25,000, unless that one ends
        the execution: on AWS the failure itself is the last event (floci-io/floci issue 2734).
        """
        number = len(self._records) + 1
        if self._is_over:
            # What a stopped execution was about to record is not part of it any more.
            return number - 1
        if number >= HISTORY_EVENTS and kind not in _ENDS:
            raise StateFailure(
                RUNTIME, f"The execution reached the maximum number of history events ({HISTORY_EVENTS})."
            )
        self._is_over = kind in _ENDS
        self._records.append(_Record(kind, self._now(), details, details_name, names))
        if self._log is not None:
            self._log({"executionArn": self._arn, **self._event(number)})
        return number

    def _event(self, number: int) -> Event:
        kind, at, details, details_name, names = self._records[number - 1]
        # AWS links the first state, and a time-out, to nothing: both have 0 before them.
        before = 0 if number <= 2 or kind == "ExecutionTimedOut" else number - 1  # noqa: PLR2004
        event: Event = {"id": number, "previousEventId": before, "timestamp": timestamp(at), "type": kind}
        if details is not None:
            event[f"{details_name or kind[0].lower() + kind[1:]}EventDetails"] = {**names, **details}
        return event
