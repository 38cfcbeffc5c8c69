"""What EventBridge takes and refuses in a PutEvents call, and the envelope it makes of an accepted entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from headrace.domain.instants import to_text
from headrace.domain.wire import read_json
from headrace.ports import Json

MAX_ENTRIES = 10
MAX_CALL_BYTES = 256 * 1024
MAX_DETAIL_TYPE_CHARACTERS = 128
ACCOUNT, REGION = "000000000000", "local"
"""As in the ARNs of local executions."""


class CallRefused(ValueError):
    """A PutEvents call is refused as a whole; `code` is the error type that AWS answers."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_call(entries: Json) -> Sequence[Mapping[str, Json]]:
    """Return the entries of a call. Raises CallRefused for what AWS refuses whole (aws-facts.md section 4)."""
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise CallRefused("SerializationException", "Entries must be a list of objects")
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise CallRefused("ValidationException", f"a call has 1 to {MAX_ENTRIES} entries, this one {len(entries)}")
    size_bytes = sum(map(_size_bytes, entries))
    if size_bytes > MAX_CALL_BYTES:
        raise CallRefused("ValidationException", f"the entries have {size_bytes} bytes, at most {MAX_CALL_BYTES}")
    return entries


def detail_of(entry: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return the detail of an entry when it is the text of a JSON object, else None."""
    try:
        detail = read_json(entry["Detail"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return detail if isinstance(detail, dict) else None


def entry_fault(entry: Mapping[str, Json], detail: dict[str, Json] | None, bus: str) -> tuple[str, str] | None:
    """Return the ErrorCode and ErrorMessage of an entry that is refused alone, or None; `detail` is its `detail_of`."""
    source, detail_type = entry.get("Source"), entry.get("DetailType")
    if not isinstance(source, str) or not source:
        return "InvalidArgument", "Source is not a text of at least one character"
    if source.startswith("aws."):
        return "NotAuthorizedForSourceException", f"Not authorized for the source: {source}"
    if not isinstance(detail_type, str) or not 1 <= len(detail_type) <= MAX_DETAIL_TYPE_CHARACTERS:
        return "InvalidArgument", f"DetailType is not a text of 1 to {MAX_DETAIL_TYPE_CHARACTERS} characters"
    if str(entry.get("EventBusName", bus)).rpartition("/")[2] != bus:
        return "InvalidArgument", f"there is no event bus {entry['EventBusName']!r}; there is {bus!r}"
    return None if detail is not None else ("MalformedDetail", "Detail is malformed.")


def envelope(
    entry: Mapping[str, Json], detail: dict[str, Json] | None, event_id: str, now: datetime
) -> dict[str, Json]:
    """Return the event that a rule's target receives for an entry without fault."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": entry["DetailType"],
        "source": entry["Source"],
        "account": ACCOUNT,
        "time": to_text(now),
        "region": REGION,
        "resources": list(entry.get("Resources", ())),
        "detail": detail,
    }


def _size_bytes(entry: Mapping[str, Json]) -> int:
    """Return the size as EventBridge counts it: 14 bytes for a Time, and the UTF-8 bytes of the texts.

    Source: docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html.
    """
    texts = (entry.get("Source"), entry.get("DetailType"), entry.get("Detail"), *(entry.get("Resources") or ()))
    return 14 * ("Time" in entry) + sum([len(text.encode()) for text in texts if isinstance(text, str)])
