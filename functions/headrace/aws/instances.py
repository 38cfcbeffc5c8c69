"""Reads machines out of EC2's answers, where anything may still be missing just after a launch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.aws.tags import ROLE, RUN, filters, tags_of
from headrace.domain.plan import Role
from headrace.ports import Node, NodeLife

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

PAGE = 1000
LIVES: dict[str, NodeLife] = {
    "pending": "pending",
    "running": "running",
    "shutting-down": "stopping",
    "stopping": "stopping",
    # A stopped machine still has disks that are billed: it is to be asked to terminate.
    "stopped": "stopping",
    "terminated": "terminated",
}
ROLES: dict[str, Role] = {"storage": "storage", "compute": "compute"}
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


def describe(client: EC2Client, tags: dict[str, str], node_id: str | None = None) -> Iterator[InstanceTypeDef]:
    """Yield every machine with these tags, in every state, from all pages; of one id when it is given.

    The id is a filter, since EC2 refuses a call that names an id it does not know.
    """
    by_id: list[FilterTypeDef] = [{"Name": "instance-id", "Values": [node_id]}] if node_id else []
    pages = client.get_paginator("describe_instances").paginate(
        Filters=[*filters(tags), *by_id], PaginationConfig={"PageSize": PAGE}
    )
    for page in pages:
        for reservation in page["Reservations"]:
            yield from reservation.get("Instances", ())


def to_node(instance: InstanceTypeDef) -> Node | None:
    """Return the machine, or None while it does not show whose it is (its tags are written a little later)."""
    tags = tags_of(instance.get("Tags", ()))
    role = ROLES.get(tags.get(ROLE, ""))
    if role is None or not tags.get(RUN):
        return None
    return Node(
        node_id=instance["InstanceId"],
        run_id=tags[RUN],
        role=role,
        instance_type=instance["InstanceType"],
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        address=instance.get("PrivateIpAddress", ""),
        life=LIVES.get(instance["State"]["Name"], "pending"),
        launched_at=instance["LaunchTime"],
        ended_at=ended_at(instance.get("StateTransitionReason", "")),
        ended_because=instance.get("StateReason", {}).get("Message", ""),
        placement="cluster" if instance.get("Placement", {}).get("GroupName") else "one zone",
    )


def ended_at(reason: str) -> datetime | None:
    """Return the instant in `User initiated (2026-11-30 06:27:22 GMT)`, or None where the reason names none."""
    found = _WHEN.search(reason)
    return None if found is None else datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
