"""Launches on EC2: which calls are made, zone after zone and batch after batch, and what each answer means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from headrace.aws.batches import Launcher, batches, token_of
from headrace.aws.fleets import AwsFleets
from headrace.aws.places import Place
from headrace.aws.prices import PackagedPrices
from headrace.domain.errors import InfeasibleJob
from headrace.domain.launch import Beside, LaunchRequest
from tests.aws.recorded import ANY, FixedClock, recorded, refusal
from tests.local.agents import launch_request

SUBNETS = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b", "us-east-1c": "subnet-c"}
OFFERED = dict.fromkeys(SUBNETS, ("i4i.large", "i4i.xlarge"))


def arch_of(instance_type: str) -> Any:
    return PackagedPrices().arch_of("us-east-1", instance_type)


def fleets_of(client: Any) -> AwsFleets:
    return AwsFleets(client, Launcher("headrace", arch_of), SUBNETS, FixedClock())


def ask_nothing_known(stubber: Any) -> None:
    stubber.add_response("describe_instances", {"Reservations": []}, {"Filters": ANY, "MaxResults": 1000})


def ask_offers(stubber: Any) -> None:
    rows = [
        {"InstanceType": one, "LocationType": "availability-zone", "Location": zone}
        for zone, types in OFFERED.items()
        for one in types
    ]
    # Two pages, since the second one counts as well.
    asked = {"LocationType": "availability-zone", "Filters": ANY}
    first = {"InstanceTypeOfferings": rows[:1], "NextToken": "more"}
    stubber.add_response("describe_instance_type_offerings", first, asked)
    stubber.add_response(
        "describe_instance_type_offerings", {"InstanceTypeOfferings": rows[1:]}, {**asked, "NextToken": "more"}
    )


def call(request: LaunchRequest, zone: str, number: int, size: int) -> dict[str, Any]:
    """Return what CreateFleet must be asked for one batch of the two types."""
    return {
        "Type": "instant",
        "ClientToken": token_of(request, zone, number),
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateName": "headrace-storage-x86_64",
                    "Version": "$Latest",
                },
                "Overrides": [
                    {"InstanceType": one, "SubnetId": SUBNETS[zone], "Priority": float(rank)}
                    for rank, one in enumerate(request.instance_types)
                ],
            }
        ],
        "TargetCapacitySpecification": {"TotalTargetCapacity": size, "DefaultTargetCapacityType": "on-demand"},
        "OnDemandOptions": {
            "AllocationStrategy": "prioritized",
            "SingleAvailabilityZone": True,
            "MinTargetCapacity": size,
        },
        "TagSpecifications": ANY,
    }


def came(size: int, first: int = 0, instance_type: str = "i4i.large") -> dict[str, Any]:
    ids = [f"i-{number:017x}" for number in range(first, first + size)]
    return {"FleetId": "fleet-1", "Instances": [{"InstanceIds": ids, "InstanceType": instance_type}], "Errors": []}


def short(*refusals: dict[str, Any]) -> dict[str, Any]:
    return {"FleetId": "fleet-1", "Instances": [], "Errors": list(refusals)}


def test_a_zone_without_capacity_is_followed_by_the_next() -> None:
    request = launch_request("job-1", count=2)
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        overrides = {"LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": "i4i.xlarge"}}}
        fault = {**refusal("InsufficientInstanceCapacity", "none left"), **overrides}
        stubber.add_response("create_fleet", short(fault), call(request, "us-east-1a", 0, 2))
        stubber.add_response("create_fleet", came(2), call(request, "us-east-1b", 0, 2))
        result = fleets_of(client).launch(request)
    assert [(node.zone, node.life, node.address) for node in result.nodes] == [("us-east-1b", "pending", "")] * 2
    (fault_seen,) = result.faults
    assert (fault_seen.instance_type, fault_seen.zone, fault_seen.meaning) == ("i4i.xlarge", "us-east-1a", "capacity")
    assert fault_seen.message == "InsufficientInstanceCapacity: none left"


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("VcpuLimitExceeded", "quota"),
        ("MaxSpotInstanceCountExceeded", "quota"),
        ("UnauthorizedOperation", "denied"),
    ],
)
def test_a_quota_or_a_refusal_is_the_same_in_every_zone_so_no_other_is_tried(code: str, meaning: str) -> None:
    request = launch_request("job-1")
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        stubber.add_response("create_fleet", short(refusal(code)), call(request, "us-east-1a", 0, 1))
        result = fleets_of(client).launch(request)
    assert (result.nodes, [one.meaning for one in result.faults]) == ((), [meaning])


def test_a_call_that_is_refused_as_a_whole_is_a_fault_too() -> None:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        stubber.add_client_error("create_fleet", "UnauthorizedOperation", "ec2:CreateFleet")
        (fault,) = fleets_of(client).launch(launch_request("job-1")).faults
    assert (fault.meaning, fault.message) == ("denied", "UnauthorizedOperation: ec2:CreateFleet")


def test_an_error_that_is_no_shortage_is_raised() -> None:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        stubber.add_client_error("create_fleet", "InvalidLaunchTemplateName.NotFoundException")
        with pytest.raises(ClientError, match="InvalidLaunchTemplateName"):
            fleets_of(client).launch(launch_request("job-1"))


def test_265_machines_come_in_three_calls_of_100_at_most() -> None:
    request = launch_request("job-1", count=265)
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        for number, size in enumerate((100, 100, 65)):
            stubber.add_response("create_fleet", came(size, 100 * number), call(request, "us-east-1a", number, size))
        result = fleets_of(client).launch(request)
    assert len({node.node_id for node in result.nodes}) == 265


def test_a_later_batch_that_does_not_come_leaves_a_partial_fleet_with_its_reason() -> None:
    request = launch_request("job-1", count=150)
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        stubber.add_response("create_fleet", came(100), call(request, "us-east-1a", 0, 100))
        stubber.add_response(
            "create_fleet", short(refusal("UnfulfillableCapacity")), call(request, "us-east-1a", 1, 50)
        )
        result = fleets_of(client).launch(request)
    assert len(result.nodes) == 100
    assert [(one.meaning, one.zone) for one in result.faults] == [("capacity", "us-east-1a")]


def test_each_later_attempt_asks_in_calls_of_half_the_size_and_goes_on_where_some_have_come() -> None:
    request = replace(launch_request("job-1", count=120), attempt=2, zones=("us-east-1b",))
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        for number, size in enumerate((50, 50)):
            stubber.add_response("create_fleet", came(size, 100 * number), call(request, "us-east-1b", number, size))
        stubber.add_response(
            "create_fleet", short(refusal("UnfulfillableCapacity")), call(request, "us-east-1b", 2, 20)
        )
        result = fleets_of(client).launch(request)
    assert (len(result.nodes), [one.meaning for one in result.faults]) == (100, ["capacity"])
    assert [list(batches(120, attempt)) for attempt in (1, 3)] == [[100, 20], [25, 25, 25, 25, 20]]
    assert list(batches(2, 9)) == [1, 1]


def test_tokens_are_the_same_for_the_same_launch_and_fit() -> None:
    request = launch_request("job-1", count=250, token="x" * 100)
    where = [(zone, group) for zone in SUBNETS for group in ("", "group-1")]
    tokens = [token_of(request, zone, number, group) for zone, group in where for number, _ in enumerate(batches(250))]
    assert tokens == [token_of(request, zone, number, group) for zone, group in where for number in range(3)]
    assert len(set(tokens)) == 18
    assert {len(token) for token in tokens} == {64}


def test_a_launch_that_was_cut_short_goes_on_in_the_zone_where_it_began() -> None:
    request = launch_request("job-1", count=101)
    known = {
        "InstanceId": "i-00000000000000000",
        "InstanceType": "i4i.large",
        "LaunchTime": FixedClock().now(),
        "State": {"Name": "pending"},
        "Placement": {"AvailabilityZone": "us-east-1c"},
        "Tags": [{"Key": "headrace:run-id", "Value": "job-1"}, {"Key": "headrace:role", "Value": "storage"}],
    }
    with recorded("ec2") as (client, stubber):
        stubber.add_response("describe_instances", {"Reservations": [{"Instances": [known]}]})
        ask_offers(stubber)
        stubber.add_response("create_fleet", came(100), call(request, "us-east-1c", 0, 100))
        stubber.add_response("create_fleet", came(1, 100), call(request, "us-east-1c", 1, 1))
        assert len(fleets_of(client).launch(request).nodes) == 101


def test_types_of_two_architectures_use_two_templates_and_keep_their_order() -> None:
    request = replace(launch_request("job-1"), instance_types=("i4g.large", "i4i.large", "i8g.large"), role="compute")
    made = Launcher("headrace", arch_of).fleet_call(
        request, Place("us-east-1a", "subnet-a", request.instance_types), 0, 1
    )
    found = {
        str(config["LaunchTemplateSpecification"]["LaunchTemplateName"]): [
            (one["InstanceType"], one["Priority"]) for one in config["Overrides"]
        ]
        for config in made["LaunchTemplateConfigs"]
    }
    assert found == {
        "headrace-compute-arm64": [("i4g.large", 0.0), ("i8g.large", 2.0)],
        "headrace-compute-x86_64": [("i4i.large", 1.0)],
    }


def test_spot_is_asked_for_as_spot() -> None:
    request = replace(launch_request("job-1", count=3), market="spot")
    made = Launcher("headrace", arch_of).fleet_call(request, Place("us-east-1a", "subnet-a", ("i4i.large",)), 0, 3)
    assert made["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    assert made["SpotOptions"]["MinTargetCapacity"] == 3
    assert "OnDemandOptions" not in made


def test_machines_and_their_disks_carry_the_tags_by_which_everything_is_found() -> None:
    request = launch_request("job-1")
    made = Launcher("headrace", arch_of).fleet_call(request, Place("us-east-1a", "subnet-a", ("i4i.large",)), 0, 1)
    tags = {
        str(one["ResourceType"]): {tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in made["TagSpecifications"]
    }
    assert tags["fleet"] == {"headrace:stack": "headrace", "headrace:run-id": "job-1"}
    assert tags["volume"] == tags["instance"]
    assert tags["instance"] == {
        "headrace:stack": "headrace",
        "headrace:run-id": "job-1",
        "headrace:role": "storage",
        "headrace:attempt": "1",
        "headrace:deadline-at": "2099-11-30T12:00:00.000Z",
        "Name": "job-1-storage",
    }


def test_without_a_zone_that_fits_the_fault_says_which_zones_offer_what() -> None:
    request = replace(launch_request("job-1"), beside=Beside(("p5.48xlarge",)))
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        result = fleets_of(client).launch(request)
    assert result.nodes == ()
    assert result.faults[0].message == (
        "offered in us-east-1a, us-east-1b, us-east-1c, and may go to us-east-1a, us-east-1b, us-east-1c beside one of "
        "p5.48xlarge; add a subnet in a zone that fits, or choose another type or region"
    )


def test_another_region_than_the_stacks_is_refused() -> None:
    with recorded("ec2") as (client, _), pytest.raises(InfeasibleJob, match="Submit the job to a stack in eu-west-1"):
        fleets_of(client).launch(replace(launch_request("job-1"), region="eu-west-1"))
