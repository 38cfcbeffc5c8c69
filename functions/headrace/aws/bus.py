"""The Bus port on EventBridge: a call that succeeds may still hold an entry that failed, so each is looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace.domain.errors import HeadraceError
from headrace.ports import Json

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

ENTRY_BYTES_MAX = 256 * 1024
"""What stored documents say; later service models allow more (aws-facts.md section 4)."""
PAUSES_SECONDS = (0.1, 0.4)


class EventNotAccepted(HeadraceError):
    """The bus refused an event of the control plane."""


class AwsBus:
    """The Bus port."""

    def __init__(self, client: EventBridgeClient, name: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._name = name
        self._pause = pause

    def put(self, source: str, detail_type: str, detail: Mapping[str, Json]) -> None:
        """Publish one event, three times at most. Raises EventNotAccepted when it is too large or refused thrice."""
        text = json.dumps(detail)
        size_bytes = sum(len(part.encode()) for part in (source, detail_type, text))
        if size_bytes >= ENTRY_BYTES_MAX:
            raise EventNotAccepted(
                f"event {detail_type!r} of {source!r} has {size_bytes:,} bytes; EventBridge takes less than "
                f"{ENTRY_BYTES_MAX:,}. Put what is big into the run bucket and its key into the event"
            )
        entry: PutEventsRequestEntryTypeDef = {
            "Source": source,
            "DetailType": detail_type,
            "Detail": text,
            "EventBusName": self._name,
        }
        fault = self._try(entry)
        for seconds in PAUSES_SECONDS:
            if fault is None:
                return
            self._pause(seconds)
            fault = self._try(entry)
        if fault is not None:
            raise EventNotAccepted(f"event {detail_type!r} of {source!r}: {fault}")

    def _try(self, entry: PutEventsRequestEntryTypeDef) -> str | None:
        """Return why the entry was not accepted, or None."""
        answer = self._client.put_events(Entries=[entry])
        if not answer["FailedEntryCount"]:
            return None
        (result,) = answer["Entries"]
        return f"{result.get('ErrorCode')}: {result.get('ErrorMessage')}"
