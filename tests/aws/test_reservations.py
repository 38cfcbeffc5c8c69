"""Capacity reservations and capacity blocks: used by name, in their own zone, and refused with their state in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.aws.batches import Launcher, token_of
from headrace.aws.checks import AwsChecks
from headrace.domain.errors import InfeasibleJob
from headrace.domain.launch import Beside, LaunchRequest
from headrace.domain.schedule import Reservation
from tests.aws.recorded import ANY, NOW, recorded
from tests.aws.test_fleets import SUBNETS, arch_of, ask_nothing_known, ask_offers, came, fleets_of
from tests.local.agents import launch_request

ID = "cr-0123456789abcdef0"
REQUEST = replace(launch_request("job-1", count=2), role="compute", reservation=ID)


def reservation(**more: Any) -> dict[str, Any]:
    found = {
        "CapacityReservationId": ID,
        "InstanceType": "i4i.large",
        "AvailabilityZone": "us-east-1b",
        "State": "active",
        "TotalInstanceCount": 16,
        "AvailableInstanceCount": 8,
        "StartDate": datetime(2026, 12, 1, tzinfo=UTC),
    }
    return {**found, **more}


def describe(stubber: Any, **more: Any) -> None:
    answer = {"CapacityReservations": [reservation(**more)]}
    stubber.add_response("describe_capacity_reservations", answer, {"CapacityReservationIds": [ID]})


def tell_template(stubber: Any, *interfaces: dict[str, Any]) -> None:
    """Tell the newest version of the template, whose interfaces RunInstances wants repeated with their subnet."""
    data = {"ImageId": "ami-1", "NetworkInterfaces": list(interfaces)}
    asked_for = {"LaunchTemplateName": "headrace-compute-x86_64", "Versions": ["$Latest"], "ResolveAlias": True}
    answer = {"LaunchTemplateVersions": [{"LaunchTemplateData": data}]}
    stubber.add_response("describe_launch_template_versions", answer, asked_for)


@contextmanager
def asked(**more: Any) -> Iterator[tuple[Any, Any]]:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        describe(stubber, **more)
        yield fleets_of(client), stubber


@pytest.mark.parametrize(
    ("kind", "market"),
    [("default", {}), ("capacity-block", {"InstanceMarketOptions": {"MarketType": "capacity-block"}})],
)
def test_machines_are_launched_into_the_reservation(kind: str, market: dict[str, Any]) -> None:
    with asked(ReservationType=kind) as (fleets, stubber):
        tell_template(stubber, {"DeviceIndex": 0, "Groups": ["sg-1"], "Description": "dropped"})
        expected = {
            "ClientToken": token_of(REQUEST, "us-east-1b", 0),
            "LaunchTemplate": {"LaunchTemplateName": "headrace-compute-x86_64", "Version": "$Latest"},
            "InstanceType": "i4i.large",
            "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1"], "SubnetId": "subnet-b"}],
            "MinCount": 2,
            "MaxCount": 2,
            "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": ID}},
            "TagSpecifications": ANY,
            **market,
        }
        answer = {"Instances": [{"InstanceId": f"i-{n}", "InstanceType": "i4i.large"} for n in (1, 2)]}
        stubber.add_response("run_instances", answer, expected)
        result = fleets.launch(REQUEST)
    assert [(node.node_id, node.zone) for node in result.nodes] == [("i-1", "us-east-1b"), ("i-2", "us-east-1b")]


@pytest.mark.parametrize(
    ("more", "meaning", "message"),
    [
        ({"State": "scheduled"}, "capacity", "it is scheduled and starts at 2026-12-01T00:00:00.000Z"),
        (
            {"State": "cancelled", "StartDate": NOW},
            "capacity",
            "it is cancelled and starts at 2026-11-30T12",
        ),
        ({"AvailableInstanceCount": 1}, "capacity", "it has 1 free machines of the 2 asked for"),
        ({"InstanceType": "p5.48xlarge"}, "other", "it is for p5.48xlarge, the plan asks for i4i.large, i4i.xlarge"),
        ({"AvailabilityZone": "us-east-1f"}, "other", "it is in us-east-1f, where the run cannot be"),
    ],
)
def test_a_reservation_that_cannot_be_used_says_why(more: dict[str, Any], meaning: str, message: str) -> None:
    with asked(**more) as (fleets, _):
        (fault,) = fleets.launch(REQUEST).faults
    assert fault.meaning == meaning
    assert fault.message.startswith(f"reservation {ID}: {message}")


def test_a_reservation_that_has_begun_is_tried_whatever_it_shows_yet() -> None:
    with asked(State="scheduled", StartDate=NOW, AvailableInstanceCount=0) as (fleets, stubber):
        tell_template(stubber)
        stubber.add_response("run_instances", {"Instances": [{"InstanceId": "i-1", "InstanceType": "i4i.large"}]})
        assert [node.node_id for node in fleets.launch(REQUEST).nodes] == ["i-1"]


def checks_of(client: Any) -> AwsChecks:
    return AwsChecks(client, client, Launcher("headrace", arch_of), SUBNETS)


def test_a_reservation_is_told_as_it_stands() -> None:
    with recorded("ec2") as (client, stubber):
        end = datetime(2026, 12, 3, 11, 30, tzinfo=UTC)
        describe(stubber, ReservationType="capacity-block", State="scheduled", EndDate=end)
        found = checks_of(client).reservation(ID)
    assert found == Reservation(
        reservation_id=ID,
        kind="capacity-block",
        state="scheduled",
        instance_type="i4i.large",
        zone="us-east-1b",
        count=16,
        free=8,
        starts_at="2026-12-01T00:00:00.000Z",
        ends_at="2026-12-03T11:30:00.000Z",
    )


def test_a_reservation_that_is_not_there_or_has_no_subnet_is_refused_before_any_launch() -> None:
    with recorded("ec2") as (client, stubber):
        stubber.add_client_error("describe_capacity_reservations", "InvalidCapacityReservationId.NotFound", "none")
        with pytest.raises(InfeasibleJob, match=f"EC2 has no {ID} in us-east-1"):
            checks_of(client).reservation(ID)
        describe(stubber, AvailabilityZone="us-east-1f")
        with pytest.raises(InfeasibleJob, match="is in us-east-1f, this stack has subnets in us-east-1a"):
            checks_of(client).reservation(ID)


def test_a_reservation_away_from_the_storage_is_no_use() -> None:
    with asked() as (fleets, _):
        (fault,) = fleets.launch(replace(REQUEST, zones=("us-east-1a",))).faults
    assert "us-east-1b, where the run cannot be" in fault.message


def test_a_shortage_inside_the_reservation_is_told() -> None:
    with asked() as (fleets, stubber):
        tell_template(stubber)
        stubber.add_client_error("run_instances", "ReservationCapacityExceeded", "taken meanwhile")
        (fault,) = fleets.launch(REQUEST).faults
    assert (fault.meaning, fault.message) == ("capacity", "ReservationCapacityExceeded: taken meanwhile")


def test_storage_goes_to_the_zone_of_the_reservation() -> None:
    request: LaunchRequest = replace(launch_request("job-1"), beside=Beside(("i4i.xlarge",), ID))
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        describe(stubber, AvailabilityZone="us-east-1c")
        stubber.add_response("create_fleet", came(1))
        (node,) = fleets_of(client).launch(request).nodes
    assert node.zone == "us-east-1c"
