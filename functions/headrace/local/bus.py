"""The event bus of one machine: one road for the agents' endpoint, the state machines and the Bus port."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from headrace.domain.errors import HeadraceError
from headrace.domain.names import uuid_text
from headrace.local.event_entries import check_call, detail_of, entry_fault, envelope
from headrace.ports import Clock, Entropy, Json

BUS_NAME = "headrace"


class EventNotAccepted(HeadraceError):
    """The bus refused an event of the control plane."""


class LocalBus:
    """Takes entries as PutEvents does and hands each accepted one, as an envelope, to `deliver`.

    `deliver` is called in the caller's thread and must return at once. This object is the Bus port as well.
    """

    def __init__(self, deliver: Callable[[dict[str, Json]], None], clock: Clock, entropy: Entropy) -> None:
        self._deliver = deliver
        self._clock = clock
        self._entropy = entropy

    def accept(self, entries: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
        """Return the answer of PutEvents: an id or an error for each entry, in order.

        Raises CallRefused when the call is refused as a whole.
        """
        results = [self._accept_one(entry) for entry in check_call(entries)]
        return {"FailedEntryCount": sum("ErrorCode" in result for result in results), "Entries": results}

    def put(self, source: str, detail_type: str, detail: Mapping[str, Json]) -> None:
        """Publish one event. Raises EventNotAccepted, since the same entry would be refused again."""
        entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail), "EventBusName": BUS_NAME}
        (result,) = self.accept([entry])["Entries"]
        if "ErrorCode" in result:
            raise EventNotAccepted(
                f"event {detail_type!r} of {source!r}: {result['ErrorCode']}: {result['ErrorMessage']}"
            )

    def _accept_one(self, entry: Mapping[str, Json]) -> dict[str, Json]:
        detail = detail_of(entry)
        fault = entry_fault(entry, detail, BUS_NAME)
        if fault is not None:
            return {"ErrorCode": fault[0], "ErrorMessage": fault[1]}
        event_id = uuid_text(self._entropy.token_hex(16))
        self._deliver(envelope(entry, detail, event_id, self._clock.now()))
        return {"EventId": event_id}
