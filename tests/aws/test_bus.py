"""PutEvents: an entry that failed inside a call that succeeded is sent again, three times at most."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.aws.bus import ENTRY_BYTES_MAX, AwsBus, EventNotAccepted
from tests.aws.recorded import recorded

ENTRY = {"Source": "headrace.run", "DetailType": "Run Warned", "Detail": '{"n": 1}', "EventBusName": "headrace"}


def answer(stubber: Any, code: str | None) -> None:
    entry = {"EventId": "1"} if code is None else {"ErrorCode": code, "ErrorMessage": "as recorded"}
    response = {"FailedEntryCount": int(code is not None), "Entries": [entry]}
    stubber.add_response("put_events", response, {"Entries": [ENTRY]})


def put(client: Any, pauses: list[float]) -> None:
    AwsBus(client, "headrace", pauses.append).put("headrace.run", "Run Warned", {"n": 1})


def test_an_accepted_event_is_sent_once() -> None:
    pauses: list[float] = []
    with recorded("events") as (client, stubber):
        answer(stubber, None)
        put(client, pauses)
    assert pauses == []


def test_a_failed_entry_is_sent_again() -> None:
    pauses: list[float] = []
    with recorded("events") as (client, stubber):
        for code in ("ThrottlingException", "InternalFailure", None):
            answer(stubber, code)
        put(client, pauses)
    assert pauses == [0.1, 0.4]


def test_patience_has_an_end() -> None:
    with recorded("events") as (client, stubber):
        for _ in range(3):
            answer(stubber, "InternalFailure")
        with pytest.raises(EventNotAccepted, match=r"'Run Warned' of 'headrace\.run': InternalFailure: as recorded"):
            put(client, [])


def test_size_is_counted_in_bytes_of_utf_8_and_too_large_an_event_is_not_sent() -> None:
    with recorded("events") as (client, _):
        detail = {"text": "x" * ENTRY_BYTES_MAX}
        with pytest.raises(EventNotAccepted, match=r"has 262,\d+ bytes; EventBridge takes less than 262,144"):
            AwsBus(client, "headrace").put("headrace.run", "Run Warned", detail)
