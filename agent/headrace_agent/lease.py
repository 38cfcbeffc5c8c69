"""Until when this node stays: an absolute deadline, and a short lease while it has no work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from headrace_agent.fields import ConfigError, Fields


class Renewal(NamedTuple):
    """What a lease says, in the time of the control plane."""

    deadline_at: datetime
    renewed_at: datetime


def parse_lease(text: bytes) -> Renewal:
    """Return what a lease.json says; raises ConfigError when it is malformed."""
    fields = Fields.parse(text, "lease.json")
    return Renewal(_instant(fields, "deadline_at"), _instant(fields, "renewed_at"))


def _instant(fields: Fields, name: str) -> datetime:
    given = fields.text(name)
    try:
        instant = datetime.fromisoformat(given)
    except ValueError as error:
        raise ConfigError(f"lease.json: {name} must be an ISO 8601 instant, found {given!r}") from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


class Lease:
    """The rules by which a node leaves by itself.

    The control plane rewrites `lease.json` below the node's own prefix again and again. Its deadline counts while it
    is earlier than the one given at launch, which nothing extends. A lease whose text changed is the only sign that
    the control plane lives: the bus and S3 answer long after nobody works behind them. Without such a sign, or with
    its identity deleted, a node that neither works nor serves a job elsewhere goes after `idle_seconds`; one that
    works goes at its deadline only. Intervals are measured on a clock that nobody sets, and so is the time from the
    renewal of a lease to its deadline: a node whose own clock is wrong must not end a healthy job.
    """

    def __init__(
        self, launch_deadline_at: datetime, idle_seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.deadline_at = self._cap = launch_deadline_at
        self._idle_seconds = idle_seconds
        self._monotonic = monotonic
        self._until = math.inf
        self._text: bytes | None = None
        self._needed_at = monotonic()
        self._gone_since: float | None = None

    def take(self, text: bytes | None, *, has_identity: bool) -> None:
        """Note what the node's prefix holds: the lease, None when there is none, and whether an identity is there.

        Raises ConfigError for a malformed lease, which then counts as none.
        """
        if text is not None or has_identity:
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = self._monotonic()
        if text is not None and text != self._text:
            renewal = parse_lease(text)
            self.deadline_at = min(self._cap, renewal.deadline_at)
            self._until = self._monotonic() + (self.deadline_at - renewal.renewed_at).total_seconds()
            self._text = text
            self._needed_at = self._monotonic()

    def reason_to_leave(self, now: datetime, *, is_working: bool, is_serving: Callable[[], bool]) -> str:
        """Return why the node must go, or nothing; `is_serving` is asked only when nothing else keeps it."""
        if now >= self._cap or self._monotonic() >= self._until:
            return f"the deadline {self.deadline_at.isoformat()} has passed"
        if is_working:
            self._needed_at = self._monotonic()
            return ""
        reason = self._idle_reason()
        if reason and is_serving():
            self._needed_at = self._monotonic()
            self._gone_since = None
            return ""
        return reason

    def _idle_reason(self) -> str:
        now = self._monotonic()
        if self._gone_since is not None and now - self._gone_since >= self._idle_seconds:
            return f"no work, and this node has had no identity for {self._idle_seconds:g} s"
        if now - self._needed_at >= self._idle_seconds:
            return f"no work, and the control plane was not heard for {self._idle_seconds:g} s"
        return ""
