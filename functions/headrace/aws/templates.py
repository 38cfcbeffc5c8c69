"""Reads the newest version of a launch template: its image, and its network interfaces put into a subnet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import ResponseLaunchTemplateDataTypeDef, RunInstancesRequestTypeDef

INTERFACE_FIELDS = (
    "DeviceIndex",
    "NetworkCardIndex",
    "InterfaceType",
    "AssociatePublicIpAddress",
    "DeleteOnTermination",
    "Groups",
)


def newest(client: EC2Client, name: str) -> ResponseLaunchTemplateDataTypeDef:
    """Return what the newest version says, an image named by a parameter resolved to its id.

    Raises ClientError when there is no such template.
    """
    answer = client.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"], ResolveAlias=True)
    return answer["LaunchTemplateVersions"][0]["LaunchTemplateData"]


def put_into(
    call: RunInstancesRequestTypeDef, subnet_id: str, template: ResponseLaunchTemplateDataTypeDef
) -> RunInstancesRequestTypeDef:
    """Return the call with a subnet.

    RunInstances refuses a subnet beside the network interfaces of a template (CreateFleet does not), so a template that
    has some has them repeated here, each with the subnet.
    """
    interfaces = template.get("NetworkInterfaces", [])
    if not interfaces:
        return {**call, "SubnetId": subnet_id}
    repeated = [
        {**{name: value for name, value in one.items() if name in INTERFACE_FIELDS}, "SubnetId": subnet_id}
        for one in interfaces
    ]
    return {**call, "NetworkInterfaces": cast("Any", repeated)}
