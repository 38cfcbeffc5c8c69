"""The PutEvents endpoint refuses what EventBridge refuses, and hands on the rest as envelopes."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from headrace.local.bus import EventNotAccepted, LocalBus
from headrace.local.event_entries import CallRefused
from headrace.local.events_endpoint import EventsEndpoint
from headrace.local.system import SystemEntropy

KEY = "HEADRACE0123456789"
NOW = datetime(2026, 11, 30, 8, 0, 0, 5000, UTC)


class StandingClock:
    def now(self) -> datetime:
        return NOW


@pytest.fixture
def delivered() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def bus(delivered: list[dict[str, Any]]) -> LocalBus:
    return LocalBus(delivered.append, StandingClock(), SystemEntropy())


@pytest.fixture
def endpoint(bus: LocalBus) -> Iterator[EventsEndpoint]:
    server = EventsEndpoint(bus.accept, KEY)
    server.start()
    yield server
    server.stop()


def client_of(endpoint: EventsEndpoint, access_key_id: str = KEY) -> Any:
    return botocore.session.Session().create_client(
        "events",
        region_name="us-east-1",
        endpoint_url=endpoint.url,
        aws_access_key_id=access_key_id,
        aws_secret_access_key="secret",
    )


def entry(**changes: Any) -> dict[str, Any]:
    made = {
        "Source": "headrace.agent",
        "DetailType": "Node Ready",
        "Detail": json.dumps({"run_id": "job-1"}),
        "EventBusName": "headrace",
    }
    return {**made, **changes}


def test_an_accepted_entry_becomes_an_envelope(endpoint: EventsEndpoint, delivered: list[dict[str, Any]]) -> None:
    client = client_of(endpoint)
    answer = client.put_events(Entries=[entry(Resources=["i-1"])])
    client.close()
    assert answer["FailedEntryCount"] == 0
    assert delivered == [
        {
            "version": "0",
            "id": answer["Entries"][0]["EventId"],
            "detail-type": "Node Ready",
            "source": "headrace.agent",
            "account": "000000000000",
            "time": "2026-11-30T08:00:00.005Z",
            "region": "local",
            "resources": ["i-1"],
            "detail": {"run_id": "job-1"},
        }
    ]


def test_good_and_bad_entries_of_one_call_are_answered_apart(bus: LocalBus, delivered: list[dict[str, Any]]) -> None:
    answer = bus.accept(
        [
            entry(),
            entry(Detail="{"),
            entry(Source="aws.states"),
            entry(DetailType="x" * 129),
            entry(Detail="[1]"),
            entry(Source=""),
            entry(EventBusName="default"),
            {"Source": "a"},
            entry(DetailType="x" * 128, EventBusName="arn:aws:events:local:000000000000:event-bus/headrace"),
        ]
    )
    assert answer["FailedEntryCount"] == 7
    assert [one.get("ErrorCode") for one in answer["Entries"]] == [
        None,
        "MalformedDetail",
        "NotAuthorizedForSourceException",
        "InvalidArgument",
        "MalformedDetail",
        "InvalidArgument",
        "InvalidArgument",
        "InvalidArgument",
        None,
    ]
    assert len(delivered) == 2


@pytest.mark.parametrize("count", [0, 11])
def test_a_call_has_one_to_ten_entries(bus: LocalBus, count: int, delivered: list[dict[str, Any]]) -> None:
    with pytest.raises(CallRefused, match="1 to 10"):
        bus.accept([entry()] * count)
    assert delivered == []


def test_a_call_is_at_most_256_kib_in_utf_8(bus: LocalBus, delivered: list[dict[str, Any]]) -> None:
    empty = len('{"x": ""}') + len("headrace.agentNode Ready")
    room = 256 * 1024 - empty
    detail = '{"x": "' + "é" * (room // 2) + "a" * (room % 2) + '"}'
    assert bus.accept([entry(Detail=detail)])["FailedEntryCount"] == 0
    with pytest.raises(CallRefused, match="262145 bytes"):
        bus.accept([entry(Detail=detail.replace('"}', 'a"}'))])
    assert len(delivered) == 1


def test_the_endpoint_answers_a_refused_call_as_aws_does(endpoint: EventsEndpoint) -> None:
    client = client_of(endpoint)
    with pytest.raises(ClientError, match="ValidationException"):
        client.put_events(Entries=[entry()] * 11)
    client.close()


def test_a_stranger_is_refused(endpoint: EventsEndpoint, delivered: list[dict[str, Any]]) -> None:
    client = client_of(endpoint, "AKIAOTHER")
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        client.put_events(Entries=[entry()])
    client.close()
    assert delivered == []


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({}, b"{}", "UnrecognizedClientException"),
        ({"X-Amz-Target": "AWSEvents.PutRule"}, b"{}", "UnknownOperationException"),
        ({"X-Amz-Target": "AWSEvents.PutEvents"}, b"{", "SerializationException"),
        ({"X-Amz-Target": "AWSEvents.PutEvents"}, b"[]", "SerializationException"),
        ({"X-Amz-Target": "AWSEvents.PutEvents"}, b'{"Entries": {}}', "SerializationException"),
        ({"X-Amz-Target": "AWSEvents.PutEvents"}, b"[" * 100_000, "SerializationException"),
        ({"X-Amz-Target": "AWSEvents.PutEvents", "Content-Length": "9999999"}, b"", "RequestEntityTooLarge"),
        ({"X-Amz-Target": "AWSEvents.PutEvents", "Content-Length": "-5"}, b"", "RequestEntityTooLarge"),
    ],
)
def test_a_bad_request_is_refused_and_the_next_one_served(
    endpoint: EventsEndpoint, headers: dict[str, str], body: bytes, code: str
) -> None:
    if headers:
        headers = {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/x, SignedHeaders=host"}
    connection = http.client.HTTPConnection(endpoint.url.removeprefix("http://"), timeout=20)
    connection.request("POST", "/", body, headers)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["__type"]) == (400, code)
    connection.close()
    client = client_of(endpoint)
    assert client.put_events(Entries=[entry()])["FailedEntryCount"] == 0
    client.close()


def test_a_fault_of_ours_is_a_500_without_its_text() -> None:
    def broken(_entries: object) -> dict[str, Any]:
        raise RuntimeError("secret")

    server = EventsEndpoint(broken, KEY)
    server.start()
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
    headers = {"X-Amz-Target": "AWSEvents.PutEvents", "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/x"}
    connection.request("POST", "/", b'{"Entries": []}', headers)
    response = connection.getresponse()
    assert response.status == 500
    assert b"secret" not in response.read()
    connection.close()
    server.stop()


def test_the_control_plane_puts_events_on_the_same_road(bus: LocalBus, delivered: list[dict[str, Any]]) -> None:
    bus.put("headrace.run", "Run Succeeded", {"run_id": "job-1"})
    assert [(one["source"], one["detail"]) for one in delivered] == [("headrace.run", {"run_id": "job-1"})]
    with pytest.raises(EventNotAccepted, match="NotAuthorizedForSourceException"):
        bus.put("aws.states", "Fake", {})
