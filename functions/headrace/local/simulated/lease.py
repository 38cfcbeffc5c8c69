"""A model of the agent's lease: how long a machine stays without work, and until when it stays at all."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime

from headrace.domain.instants import from_text
from headrace.domain.nodeconfig import Lease

LOOK_SECONDS = 60.0
IDLE_LEASE_SECONDS = 1200.0


class SimulatedLease:
    """The same rules as `headrace_agent.lease`; both sides' tests hold them to the same cases."""

    def __init__(self, launch_deadline_at: datetime, loop: asyncio.AbstractEventLoop) -> None:
        self.deadline_at = self._cap = launch_deadline_at
        self._loop = loop
        self._until = math.inf
        self._text: bytes | None = None
        self._looked_at = self._needed_at = loop.time()
        self._gone_since: float | None = None

    def is_due(self) -> bool:
        """Tell whether it is time to read the lease again."""
        return self._loop.time() - self._looked_at >= LOOK_SECONDS

    def take(self, text: bytes | None, *, has_identity: bool) -> None:
        """Note what the node's prefix holds: only a lease that changed says that the control plane lives."""
        self._looked_at = self._loop.time()
        if text is not None or has_identity:
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = self._loop.time()
        if text is not None and text != self._text:
            self._text = text
            self._needed_at = self._loop.time()
            lease = Lease.model_validate_json(text)
            self.deadline_at = min(self._cap, from_text(lease.deadline_at))
            self._until = self._loop.time() + (self.deadline_at - from_text(lease.renewed_at)).total_seconds()

    def reason_to_leave(self, now: datetime, *, is_working: bool) -> str:
        """Return why the machine must go, or nothing; one that works goes at its deadline only."""
        if now >= self._cap or self._loop.time() >= self._until:
            return f"the deadline {self.deadline_at.isoformat()} has passed"
        if is_working:
            self._needed_at = self._loop.time()
        elif self._gone_since is not None and self._loop.time() - self._gone_since >= IDLE_LEASE_SECONDS:
            return "the run has ended: this machine's identity was deleted"
        elif self._loop.time() - self._needed_at >= IDLE_LEASE_SECONDS:
            return f"no work, and the control plane was not heard for {IDLE_LEASE_SECONDS:.0f} s"
        return ""
