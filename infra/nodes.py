"""What a machine is launched from: one role for all, and a launch template for each fleet and architecture.

A template carries one plain network interface, because a fleet mixes types and an EFA interface fails on a type that
has none. A type with EFA gets a template of its own, `<stack>-compute-<architecture>-<type>`, when the context names
its number of interfaces (`efa_interfaces`), and functions are told of which types; the fabric's own traffic is IP and
never uses EFA.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from aws_cdk import Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from infra.checkout import CHECKOUT
from infra.options import BadOption
from infra.wheels import agent_bundle

USER_DATA = CHECKOUT / "agent" / "boot" / "user-data.sh"
ROOT_GIB = {"storage": 16, "compute": 150}
"""A machine that trains keeps code, Python environments and the deep-learning image on its root volume."""
ROOT_DEVICE = "/dev/sda1"
"""What Ubuntu images call it."""
CATALOG = CHECKOUT / "functions" / "headrace" / "data" / "catalog.json.gz"


@dataclass(frozen=True)
class Surroundings:
    """What user data tells a machine and templates put it into."""

    run_bucket: str
    storage_group: str
    compute_group: str
    efa_interfaces: Mapping[str, int]


class AgentBundle(assets.Asset):
    """The agent with everything it needs, for machines that can fetch no package."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_, path=str(agent_bundle()))

    @property
    def object_arn(self) -> str:
        """Return the ARN of this one object."""
        return f"{self.bucket.bucket_arn}/{self.s3_object_key}"


class Nodes(Construct):
    """`template_ids` has the launch templates; `node_role` is the role of every machine."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        node_role: iam.Role,
        bundle: AgentBundle,
        images: Mapping[str, str],
        surroundings: Surroundings,
    ) -> None:
        super().__init__(scope, id_)
        self._surroundings = surroundings
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[node_role.role_name])
        self._user_data = Fn.base64(_user_data(node_role, bundle, surroundings.run_bucket))
        plain = {name: self._template(name, name, images[name], 0) for name in images}
        efa = {
            f"{name}-{type_}": self._template(f"{name}-{type_}", name, images[name], count)
            for type_, count in surroundings.efa_interfaces.items()
            for name in [f"compute-{_architecture(type_)}"]
        }
        self.template_ids = tuple(one.ref for one in (*plain.values(), *efa.values()))

    def _template(self, name: str, kind: str, image_id: str, efa_interfaces: int) -> ec2.CfnLaunchTemplate:
        role = kind.partition("-")[0]
        return ec2.CfnLaunchTemplate(
            self,
            name,
            launch_template_name=f"{Stack.of(self).stack_name}-{name}",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=image_id,
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=self._profile.attr_arn),
                instance_initiated_shutdown_behavior="terminate",
                metadata_options=_metadata_options(),
                block_device_mappings=[_root_volume(ROOT_GIB[role])],
                network_interfaces=self._interfaces(role, efa_interfaces),
                user_data=self._user_data,
            ),
        )

    def _interfaces(self, role: str, efa_interfaces: int) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty]:
        """Return one interface, or one of EFA on each network card, of which the first carries IP too."""
        group = self._surroundings.storage_group if role == "storage" else self._surroundings.compute_group
        first = ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
            device_index=0,
            network_card_index=0,
            interface_type="efa" if efa_interfaces else "interface",
            associate_public_ip_address=None if efa_interfaces > 1 else False,
            delete_on_termination=True,
            groups=[group],
        )
        others = [
            ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
                device_index=1,
                network_card_index=card,
                interface_type="efa-only",
                delete_on_termination=True,
                groups=[group],
            )
            for card in range(1, efa_interfaces)
        ]
        return [first, *others]


def _metadata_options() -> ec2.CfnLaunchTemplate.MetadataOptionsProperty:
    """Return version 2 only, one hop only, and tags, from which a machine learns which run it belongs to."""
    return ec2.CfnLaunchTemplate.MetadataOptionsProperty(
        http_endpoint="enabled",
        http_tokens="required",
        http_put_response_hop_limit=1,
        http_protocol_ipv6="disabled",
        instance_metadata_tags="enabled",
    )


def _root_volume(size_gib: int) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
        device_name=ROOT_DEVICE,
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            encrypted=True, volume_type="gp3", volume_size=size_gib, delete_on_termination=True
        ),
    )


def _user_data(node_role: iam.Role, bundle: AgentBundle, run_bucket: str) -> str:
    stack = Stack.of(bundle)
    told = {
        "REGION": stack.region,
        "DOMAIN": stack.url_suffix,
        "BUNDLE_BUCKET": bundle.s3_bucket_name,
        "BUNDLE_KEY": bundle.s3_object_key,
        "RUN_BUCKET": run_bucket,
        "NODE_ROLE_ID": cast("iam.CfnRole", node_role.node.default_child).attr_role_id,
    }
    text = USER_DATA.read_text(encoding="utf-8")
    for name, value in told.items():
        text = text.replace(f"@{name}@", value)
    return text


def _architecture(instance_type: str) -> str:
    """Return the architecture of a type. Raises BadOption when no such type is known."""
    rows = json.loads(gzip.decompress(CATALOG.read_bytes()))["types"]
    found = [str(row[1]) for row in rows if row[0] == instance_type]
    if not found:
        raise BadOption(f"context efa_interfaces: {instance_type!r} is no instance type that the catalog knows")
    return found[0]
