"""Says what happens: signs each event with the node's key and puts it into the outbox."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from headrace_agent.identity import Identity
from headrace_agent.outbox import Outbox
from headrace_agent.signing import event_id, sign

LOG = logging.getLogger(__name__)


class Say(Protocol):
    """What tasks are given to report with."""

    def __call__(self, detail_type: str, body: Mapping[str, Any]) -> None:
        """Report one event; it is on disk when this returns."""
        ...


class Reporter:
    """Turns a type and a body into a signed event; calls `stored` after each, to wake the sender."""

    def __init__(
        self,
        identity: Identity,
        outbox: Outbox,
        stored: Callable[[], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._identity = identity
        self._outbox = outbox
        self._stored = stored
        self._now = now

    def __call__(self, detail_type: str, body: Mapping[str, Any]) -> None:
        """Sign and store one event; it is on disk when this returns."""
        sequence = self._outbox.append(detail_type, lambda number: self._seal(detail_type, body, number))
        if detail_type != "Telemetry Sampled":
            LOG.info("event %d: %s %s", sequence, detail_type, json.dumps(body)[:400])
        self._stored()

    def _seal(self, detail_type: str, body: Mapping[str, Any], sequence: int) -> str:
        who = self._identity
        detail = {
            "version": 1,
            "event_id": event_id(who.run_id, who.attempt, who.node_id, sequence, detail_type),
            "run_id": who.run_id,
            "attempt": who.attempt,
            "node_id": who.node_id,
            "sequence": sequence,
            "sent_at": self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "body": dict(body),
        }
        return json.dumps(sign(detail_type, detail, who.key), separators=(",", ":"))
