"""The sender and its PutEvents calls."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_agent.outbox import Outbox, StoredEvent
from headrace_agent.putevents import BusUnavailable, EventBus, events_url
from headrace_agent.sender import Sender, batch_of, wait_seconds_after
from tests.agent.fake_bus import FakeBus

AWS_BYTES_MAX = 256 * 1024


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox.sqlite3")


def environment(bus: FakeBus) -> dict[str, str]:
    return {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_EVENTBRIDGE": bus.url}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")


def fill(outbox: Outbox, count: int) -> None:
    for _ in range(count):
        outbox.append("Job Progress", lambda number: json.dumps({"sequence": number}))


class ScriptedBus:
    """A bus in memory: each answer is a list of error codes, or an exception."""

    name = "headrace"

    def __init__(self, *answers: list[str | None] | Exception) -> None:
        self.answers = list(answers)
        self.taken: list[list[str]] = []

    def put(self, entries: Sequence[dict[str, Any]]) -> tuple[str | None, ...]:
        answer = self.answers.pop(0) if self.answers else [None] * len(entries)
        if isinstance(answer, Exception):
            raise answer
        self.taken.append([entry["Detail"] for entry in entries])
        return tuple(answer)


def test_a_request_is_what_put_events_takes_signed_for_the_region(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 1)
    Sender(outbox, EventBus("headrace", environment(bus))).flush(5)
    entry = {
        "Source": "headrace.agent",
        "DetailType": "Job Progress",
        "Detail": '{"sequence": 1}',
        "EventBusName": "headrace",
    }
    assert bus.requests == [{"Entries": [entry]}]
    sent = bus.headers[0]
    assert (sent["X-Amz-Target"], sent["Content-Type"]) == ("AWSEvents.PutEvents", "application/x-amz-json-1.1")
    assert re.match(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-west-1/events/aws4_request", sent["Authorization"]
    )


def test_at_most_ten_events_go_in_one_request_oldest_first(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 23)
    assert Sender(outbox, EventBus("headrace", environment(bus))).flush(10)
    assert [len(request["Entries"]) for request in bus.requests] == [10, 10, 3]
    assert [detail["sequence"] for _, detail in bus.details] == list(range(1, 24))


def test_of_a_200_with_refused_entries_only_those_are_sent_again(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 4)
    bus.script.append([None, "ThrottlingException", None, "InternalFailure"])
    assert Sender(outbox, EventBus("headrace", environment(bus))).flush(10)
    assert [detail["sequence"] for _, detail in bus.details] == [1, 3, 2, 4]
    assert [len(request["Entries"]) for request in bus.requests] == [4, 2]


def test_a_server_error_loses_nothing(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 2)
    bus.script += [500, 503]
    assert Sender(outbox, EventBus("headrace", environment(bus))).flush(10)
    assert [detail["sequence"] for _, detail in bus.details] == [1, 2]


def test_the_background_sends_what_it_is_woken_for(outbox: Outbox, bus: FakeBus) -> None:
    sender = Sender(outbox, EventBus("headrace", environment(bus)))
    sender.start()
    outbox.append("Node Ready", lambda _: '{"body": {}}')
    sender.wake()
    assert bus.await_event("Node Ready") == {}
    assert sender.flush(5)


def test_a_bus_that_is_away_keeps_the_events_and_bounds_the_last_effort(outbox: Outbox) -> None:
    fill(outbox, 1)
    bus = EventBus("headrace", {"AWS_ENDPOINT_URL_EVENTBRIDGE": "http://127.0.0.1:9", "AWS_REGION": "eu-west-1"})
    assert not Sender(outbox, bus).flush(0.3)
    assert outbox.depth() == 1


def test_a_wrong_number_of_results_takes_nothing(outbox: Outbox, bus: FakeBus) -> None:
    with pytest.raises(BusUnavailable, match="1 results for 2 entries"):
        _put_two(bus)
    assert outbox.depth() == 0


def _put_two(bus: FakeBus) -> None:
    one = {"Source": "s", "DetailType": "t", "Detail": "{}", "EventBusName": "b"}
    bus.take = lambda *_: (200, {"Entries": [{"EventId": "only one"}]})  # type: ignore[method-assign]
    EventBus("headrace", environment(bus)).put([one, one])


@settings(max_examples=100, print_blob=True)
@given(st.lists(st.tuples(st.integers(1, 60_000), st.sampled_from(["x", "é", "日"])), min_size=1, max_size=25))
def test_a_batch_is_a_head_of_the_events_within_both_limits(shapes: list[tuple[int, str]]) -> None:
    events = [StoredEvent(number, "Job Progress", letter * size) for number, (size, letter) in enumerate(shapes)]
    batch = batch_of(events, "headrace")
    assert [event for event, _ in batch] == events[: len(batch)]
    assert 1 <= len(batch) <= 10
    sizes = [len(entry[name].encode()) for _, entry in batch for name in ("Source", "DetailType", "Detail")]
    assert len(batch) == 1 or sum(sizes) < AWS_BYTES_MAX


@given(st.integers(1, 10_000), st.integers())
def test_waits_grow_with_failures_are_spread_and_stay_bounded(failures: int, seed: int) -> None:
    wait = wait_seconds_after(failures, random.Random(seed))  # noqa: S311 - a test
    assert 0.1 <= wait <= 0.1 + min(30.0, 0.2 * 2.0 ** min(failures, 20))


def test_a_failing_entry_does_not_hold_up_the_ones_behind_it(outbox: Outbox) -> None:
    fill(outbox, 12)
    bus = ScriptedBus(["InternalFailure", *[None] * 9])
    sender = Sender(outbox, bus)
    assert not sender.send_batch()
    assert [event.sequence for event in outbox.oldest(10)] == [1, 11, 12]
    assert sender.flush(5)
    assert bus.taken[1] == ['{"sequence": 1}', '{"sequence": 11}', '{"sequence": 12}']


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("us-east-1", "https://events.us-east-1.amazonaws.com"),
        ("cn-north-1", "https://events.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_without_a_given_endpoint_the_regions_own_is_used(region: str, url: str) -> None:
    assert events_url({"AWS_REGION": region}) == url
