"""Preflight on AWS: quotas and their use, zones, images, and policies by dry runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from botocore.stub import Stubber

from headrace.aws.batches import Launcher
from headrace.aws.checks import AwsChecks
from headrace.aws.clients import Clients
from headrace.aws.cloud import make_cloud
from headrace.aws.images import image_faults
from headrace.domain.errors import InfeasibleJob
from headrace.domain.launch import Beside, LaunchRequest
from headrace.domain.preflight import Findings, QuotaState
from tests.aws.moto_stack import moto_stack, session
from tests.aws.test_fleets import SUBNETS, arch_of, ask_offers
from tests.local.agents import launch_request

STANDARD = "L-1216C47A"
REQUEST = launch_request("job-1")


class Asked(NamedTuple):
    """The port, and what answers its clients."""

    checks: AwsChecks
    ec2: Any
    quotas: Any


@contextmanager
def asked() -> Iterator[Asked]:
    clients = Clients(session())
    with Stubber(clients.ec2) as ec2, Stubber(clients.quotas) as quotas:
        yield Asked(AwsChecks(clients.ec2, clients.quotas, Launcher("headrace", arch_of), SUBNETS), ec2, quotas)
        ec2.assert_no_pending_responses()
        quotas.assert_no_pending_responses()


def tell_template(stubber: Any, **data: Any) -> None:
    versions = [{"LaunchTemplateData": {"ImageId": "ami-1", **data}}]
    stubber.add_response("describe_launch_template_versions", {"LaunchTemplateVersions": versions})


IMAGE: dict[str, Any] = {
    "ImageId": "ami-1",
    "State": "available",
    "Architecture": "x86_64",
    "EnaSupport": True,
    "RootDeviceName": "/dev/sda1",
    "BootMode": "uefi-preferred",
}


def tell_image(stubber: Any, state: str = "available", **about: Any) -> None:
    image = {**IMAGE, "State": state, **about}
    stubber.add_response("describe_images", {"Images": [image]}, {"ImageIds": ["ami-1"]})


def tell_quota(stubber: Any, value: float) -> None:
    asked_for = {"ServiceCode": "ec2", "QuotaCode": STANDARD}
    stubber.add_response("get_service_quota", {"Quota": {"QuotaCode": STANDARD, "Value": value}}, asked_for)


def stated(fabrics: str) -> list[dict[str, str]]:
    return [{"Key": "headrace:fabric", "Value": fabrics}]


def running(instance_type: str, cores: int, threads: int, **more: str) -> dict[str, Any]:
    return {"InstanceType": instance_type, "CpuOptions": {"CoreCount": cores, "ThreadsPerCore": threads}, **more}


def test_a_quota_is_told_with_what_all_machines_of_the_region_use_of_it() -> None:
    with asked() as (checks, ec2, quotas):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2)
        tell_quota(quotas, 64.0)
        instances = [
            running("m7i.xlarge", 2, 2),
            running("i4i.large", 1, 2),
            running("c7i.large", 1, 2, InstanceLifecycle="spot"),
            running("p5.48xlarge", 96, 2, InstanceLifecycle="capacity-block"),
            running("g6.xlarge", 2, 2),
        ]
        ec2.add_response("describe_instances", {"Reservations": [{"Instances": instances}]})
        findings = checks.look([REQUEST], [STANDARD])
    assert findings == Findings({STANDARD: QuotaState(64.0, 6.0)})


@pytest.mark.parametrize("code", ["NoSuchResourceException", "AccessDeniedException"])
def test_a_quota_that_cannot_be_read_stops_nothing(code: str) -> None:
    with asked() as (checks, ec2, quotas):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2)
        quotas.add_client_error("get_service_quota", code)
        assert checks.look([REQUEST], [STANDARD]) == Findings()


def test_where_machines_may_not_be_listed_none_is_counted() -> None:
    with asked() as (checks, ec2, quotas):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2)
        tell_quota(quotas, 64.0)
        ec2.add_client_error("describe_instances", "UnauthorizedOperation")
        assert checks.look([REQUEST], [STANDARD]).quotas == {STANDARD: QuotaState(64.0, 0.0)}


def test_types_that_no_usable_zone_offers_are_named_with_the_zones_that_do() -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2)
        findings = checks.look([replace(REQUEST, beside=Beside(("p5.48xlarge",)))], [])
    assert len(findings.faults) == 2
    assert findings.faults[0].startswith("i4i.large is offered in us-east-1a, us-east-1b, us-east-1c, and may go to")


@pytest.mark.parametrize("state", ["pending", "failed"])
def test_an_image_that_cannot_be_launched_is_named(state: str) -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2, state)
        (fault,) = checks.look([REQUEST], []).faults
    assert fault.startswith(f"launch template headrace-storage-x86_64: image ami-1: it is {state}")


def findings_of(request: LaunchRequest, **about: Any) -> Findings:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        tell_template(ec2)
        tell_image(ec2, **about)
        return checks.look([request], [])


@pytest.mark.parametrize(
    ("about", "fault"),
    [
        ({"Architecture": "arm64"}, "it is for arm64, the machines are x86_64; name one for x86_64"),
        ({"EnaSupport": False}, "it is registered without ENA"),
        ({"RootDeviceName": "/dev/xvda"}, "its root device is /dev/xvda, templates size /dev/sda1"),
        ({"Tags": stated("roce")}, "its tag headrace:fabric says roce, the plan needs tcp"),
        ({"Tags": stated("")}, "its tag headrace:fabric says nothing, the plan needs tcp"),
    ],
)
def test_an_image_that_cannot_carry_the_plan_is_named_with_what_to_change(about: dict[str, Any], fault: str) -> None:
    (found,) = findings_of(replace(REQUEST, fabric="tcp"), **about).faults
    assert found.startswith(f"launch template headrace-storage-x86_64: image ami-1: {fault}")


def test_arm64_does_not_boot_by_bios() -> None:
    image: Any = {**IMAGE, "Architecture": "arm64", "BootMode": "legacy-bios"}
    assert [one[:26] for one in image_faults(image, "arm64", REQUEST)] == ["it boots by legacy BIOS, a"]
    image["BootMode"] = "uefi"
    assert list(image_faults(image, "arm64", REQUEST)) == []


def test_an_image_that_states_the_fabric_leaves_nothing_open() -> None:
    assert findings_of(replace(REQUEST, fabric="tcp"), Tags=stated("tcp roce")) == Findings()


def test_of_an_image_that_states_nothing_the_plan_says_what_is_not_known() -> None:
    findings = findings_of(replace(REQUEST, fabric="tcp"))
    assert findings.faults == ()
    assert findings.warnings[0].startswith(
        "launch template headrace-storage-x86_64: image ami-1 has no tag headrace:fabric: whether it has the kernel"
    )


def test_where_no_fabric_is_planned_none_is_asked_for() -> None:
    assert findings_of(REQUEST) == Findings()


def test_a_template_that_is_not_there_is_named() -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        ec2.add_client_error("describe_launch_template_versions", "InvalidLaunchTemplateName.NotFoundException", "none")
        (fault,) = checks.look([REQUEST], []).faults
    assert fault.startswith(
        "launch template headrace-storage-x86_64: InvalidLaunchTemplateName.NotFoundException: none"
    )


def test_a_job_for_another_region_is_refused() -> None:
    with asked() as (checks, _, _), pytest.raises(InfeasibleJob, match="eu-west-1"):
        checks.look([replace(REQUEST, region="eu-west-1")], [])


def dry(stubber: Any, operation: str, code: str) -> None:
    stubber.add_client_error(operation, code, f"would say {code}")


def test_launches_that_policies_allow_are_no_news() -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        dry(ec2, "create_fleet", "DryRunOperation")
        tell_template(ec2)
        dry(ec2, "run_instances", "DryRunOperation")
        assert checks.try_launches([REQUEST]) == ()


def test_each_refused_action_is_named() -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        dry(ec2, "create_fleet", "UnauthorizedOperation")
        tell_template(ec2)
        dry(ec2, "run_instances", "UnauthorizedOperation")
        assert checks.try_launches([REQUEST]) == (
            "storage machines: ec2:CreateFleet: UnauthorizedOperation: would say UnauthorizedOperation",
            "storage machines: ec2:RunInstances: UnauthorizedOperation: would say UnauthorizedOperation",
        )


def test_a_template_that_may_not_be_read_is_a_refusal_with_its_own_action() -> None:
    with asked() as (checks, ec2, _):
        ask_offers(ec2)
        dry(ec2, "create_fleet", "DryRunOperation")
        dry(ec2, "describe_launch_template_versions", "UnauthorizedOperation")
        (refusal,) = checks.try_launches([REQUEST])
    assert refusal.startswith("storage machines: ec2:DescribeLaunchTemplateVersions: UnauthorizedOperation")


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("DryRunOperation", None),
        ("InvalidInstanceID.NotFound", None),
        ("UnauthorizedOperation", "ec2:TerminateInstances: UnauthorizedOperation: would say UnauthorizedOperation"),
    ],
)
def test_whether_machines_can_be_ended_is_asked_of_one_of_them(code: str, refusal: str | None) -> None:
    with asked() as (checks, ec2, _):
        expected = {"InstanceIds": ["i-1"], "DryRun": True}
        ec2.add_client_error("terminate_instances", code, f"would say {code}", expected_params=expected)
        assert checks.try_terminate(["i-1", "i-2"]) == refusal


def test_a_deployed_stack_passes_and_a_dry_run_leaves_no_machine() -> None:
    with moto_stack() as stack:
        cloud = make_cloud(stack.settings, stack.clients)
        assert cloud.checks.look([REQUEST], [STANDARD]) == Findings()
        assert cloud.checks.try_launches([REQUEST]) == ()
        assert cloud.fleets.list_nodes() == ()
        (node,) = cloud.fleets.launch(REQUEST).nodes
        assert cloud.checks.try_terminate([node.node_id]) is None
        assert [one.life for one in cloud.fleets.list_nodes()] == ["running"]
