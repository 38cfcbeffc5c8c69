"""Reading machines from listings: what is missing is not there yet, and what ended says when and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.aws.instances import ended_at, to_node
from tests.aws.recorded import NOW, answering
from tests.aws.test_fleets import fleets_of

TAGS = [{"Key": "headrace:run-id", "Value": "job-1"}, {"Key": "headrace:role", "Value": "compute"}]
INSTANCE = {
    "InstanceId": "i-1",
    "InstanceType": "i4i.large",
    "LaunchTime": NOW,
    "State": {"Name": "running"},
    "Placement": {"AvailabilityZone": "us-east-1a"},
    "PrivateIpAddress": "10.0.0.7",
    "Tags": TAGS,
}
THROTTLED = (
    "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error>"
    "</Errors><RequestID>1</RequestID></Response>"
)
EMPTY = '<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>'


def listed(**more: Any) -> Any:
    return {**INSTANCE, **more}


def test_a_running_machine_is_read_whole() -> None:
    node = to_node(listed())
    assert node is not None
    assert (node.node_id, node.run_id, node.role, node.zone) == ("i-1", "job-1", "compute", "us-east-1a")
    assert (node.address, node.life, node.launched_at, node.ended_at) == ("10.0.0.7", "running", NOW, None)


@pytest.mark.parametrize("absent", ["PrivateIpAddress", "Placement"])
def test_what_is_missing_just_after_the_launch_is_empty(absent: str) -> None:
    instance = {name: value for name, value in INSTANCE.items() if name != absent}
    node = to_node(instance)  # type: ignore[arg-type]
    assert node is not None
    assert "" in (node.address, node.zone)


@pytest.mark.parametrize("tags", [[], TAGS[:1], TAGS[1:]])
def test_a_machine_that_does_not_show_whose_it_is_is_left_for_later(tags: list[Any]) -> None:
    assert to_node(listed(Tags=tags)) is None


@pytest.mark.parametrize(
    ("state", "life"),
    [("pending", "pending"), ("shutting-down", "stopping"), ("stopped", "stopping"), ("terminated", "terminated")],
)
def test_states_become_lives(state: str, life: str) -> None:
    node = to_node(listed(State={"Name": state}))
    assert node is not None
    assert node.life == life


def test_a_machine_that_ended_says_when_and_why() -> None:
    reason = {"Message": "Client.InstanceInitiatedShutdown: Instance initiated shutdown"}
    transition = "User initiated (2026-11-30 06:27:22 GMT)"
    node = to_node(listed(State={"Name": "terminated"}, StateTransitionReason=transition, StateReason=reason))
    assert node is not None
    assert node.ended_at == datetime(2026, 11, 30, 6, 27, 22, tzinfo=UTC)
    assert node.ended_because == reason["Message"]


@pytest.mark.parametrize("reason", ["", "Server.SpotInstanceTermination", "User initiated (soon)"])
def test_a_reason_without_an_instant_gives_none(reason: str) -> None:
    assert ended_at(reason) is None


def test_a_throttled_listing_is_asked_for_again() -> None:
    with answering("ec2", lambda number: (503, THROTTLED) if number < 2 else (200, EMPTY)) as (client, asked):
        assert fleets_of(client).list_nodes("job-1") == ()
    assert asked == [0, 1, 2]


def test_patience_with_throttling_has_an_end() -> None:
    with (
        answering("ec2", lambda _number: (503, THROTTLED)) as (client, asked),
        pytest.raises(Exception, match="RequestLimitExceeded"),
    ):
        fleets_of(client).list_nodes("job-1")
    assert len(asked) == 5
