"""Machines that train meet in a zone's cluster placement group, or without it where it has no room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.aws.batches import Launcher
from headrace.aws.checks import AwsChecks
from headrace.aws.clients import Clients
from headrace.aws.fleets import AwsFleets
from headrace.aws.instances import to_node
from headrace.aws.places import Place, grouped
from tests.aws.moto_stack import session
from tests.aws.recorded import FixedClock, recorded, refusal
from tests.aws.test_fleets import SUBNETS, arch_of, ask_nothing_known, ask_offers, came, short
from tests.local.agents import launch_request

GROUPS = {"us-east-1a": "group-a", "us-east-1b": "group-b"}
REQUEST = replace(launch_request("job-1", count=2), role="compute", placement="cluster")
PLACES = tuple(Place(zone, subnet, REQUEST.instance_types) for zone, subnet in SUBNETS.items())


def launcher() -> Launcher:
    return Launcher("headrace", arch_of, frozenset({"i4i.xlarge"}))


def fleets_of(client: Any) -> AwsFleets:
    return AwsFleets(client, launcher(), SUBNETS, FixedClock(), GROUPS)


def places_of(call: Any) -> set[tuple[str, str]]:
    """Return subnet and group of every override of a call."""
    overrides = [one for config in call["LaunchTemplateConfigs"] for one in config["Overrides"]]
    return {(one["SubnetId"], one.get("Placement", {}).get("GroupName", "")) for one in overrides}


def asked(place: Place) -> Any:
    return launcher().fleet_call(REQUEST, place, 0, 2)


def test_the_groups_of_all_zones_are_tried_before_any_zone_without() -> None:
    found = grouped(REQUEST, PLACES, GROUPS)
    assert [(one.zone[-1], one.group) for one in found] == [
        ("a", "group-a"),
        ("b", "group-b"),
        ("a", ""),
        ("b", ""),
        ("c", ""),
    ]


def test_machines_that_need_not_meet_are_asked_into_no_group() -> None:
    assert grouped(replace(REQUEST, placement="one zone"), PLACES, GROUPS) == PLACES


def test_the_group_is_named_in_every_override_and_without_one_none_is() -> None:
    assert places_of(asked(PLACES[0]._replace(group="group-a"))) == {("subnet-a", "group-a")}
    assert places_of(asked(PLACES[0])) == {("subnet-a", "")}


def test_machines_come_without_the_group_when_no_group_has_room() -> None:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        full = short(refusal("InsufficientInstanceCapacity", "none left"))
        for zone in ("us-east-1a", "us-east-1b"):
            place = Place(zone, SUBNETS[zone], REQUEST.instance_types, GROUPS[zone])
            stubber.add_response("create_fleet", full, asked(place))
        stubber.add_response("create_fleet", came(2), asked(PLACES[0]))
        result = fleets_of(client).launch(REQUEST)
    assert {(node.zone, node.placement) for node in result.nodes} == {("us-east-1a", "one zone")}
    assert [one.zone for one in result.faults] == ["us-east-1a", "us-east-1b"]


def test_machines_in_a_group_are_told_as_such() -> None:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        stubber.add_response("create_fleet", came(2))
        assert {node.placement for node in fleets_of(client).launch(REQUEST).nodes} == {"cluster"}


def test_a_group_that_is_not_there_is_no_reason_not_to_launch() -> None:
    with recorded("ec2") as (client, stubber):
        ask_nothing_known(stubber)
        ask_offers(stubber)
        for _ in GROUPS:
            stubber.add_client_error("create_fleet", "InvalidPlacementGroup.Unknown", "group-a is unknown")
        stubber.add_response("create_fleet", came(2), asked(PLACES[0]))
        assert len(fleets_of(client).launch(REQUEST).nodes) == 2


def known(group: str) -> Any:
    return {
        "InstanceId": "i-00000000000000000",
        "InstanceType": "i4i.large",
        "LaunchTime": FixedClock().now(),
        "State": {"Name": "pending"},
        "Placement": {"AvailabilityZone": "us-east-1b", "GroupName": group},
        "Tags": [{"Key": "headrace:run-id", "Value": "job-1"}, {"Key": "headrace:role", "Value": "compute"}],
    }


def test_a_launch_that_was_cut_short_goes_on_as_it_began() -> None:
    for group in ("group-b", ""):
        with recorded("ec2") as (client, stubber):
            stubber.add_response("describe_instances", {"Reservations": [{"Instances": [known(group)]}]})
            ask_offers(stubber)
            stubber.add_response("create_fleet", came(2), asked(PLACES[1]._replace(group=group)))
            assert len(fleets_of(client).launch(REQUEST).nodes) == 2
        node = to_node(known(group))
        assert node is not None
        assert node.placement == ("cluster" if group else "one zone")


def test_a_type_with_efa_is_launched_from_its_own_template() -> None:
    configs = asked(PLACES[0])["LaunchTemplateConfigs"]
    found = {
        config["LaunchTemplateSpecification"]["LaunchTemplateName"]: [
            (one["InstanceType"], one["Priority"]) for one in config["Overrides"]
        ]
        for config in configs
    }
    assert found == {
        "headrace-compute-x86_64": [("i4i.large", 0.0)],
        "headrace-compute-x86_64-i4i.xlarge": [("i4i.xlarge", 1.0)],
    }
    assert launcher().template("storage", "i4i.xlarge") == "headrace-storage-x86_64"


def test_dry_runs_name_the_group_too() -> None:
    clients = Clients(session())
    seen: list[tuple[str, Any]] = []
    with recorded("ec2") as (client, stubber):
        client.meta.events.register(
            "provide-client-params.ec2", lambda params, model, **_: seen.append((model.name, dict(params)))
        )
        checks = AwsChecks(client, clients.quotas, launcher(), SUBNETS, GROUPS)
        ask_offers(stubber)
        stubber.add_client_error("create_fleet", "DryRunOperation")
        template = {"LaunchTemplateData": {"ImageId": "ami-1"}}
        stubber.add_response("describe_launch_template_versions", {"LaunchTemplateVersions": [template]})
        stubber.add_client_error("run_instances", "DryRunOperation")
        assert checks.try_launches([REQUEST]) == ()
    calls = dict(seen)
    assert places_of(calls["CreateFleet"]) == {("subnet-a", "group-a")}
    assert calls["RunInstances"]["Placement"] == {"GroupName": "group-a"}
