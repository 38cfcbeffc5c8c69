"""The tags by which everything of a run is found, written in the launch call and read from listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.domain.instants import to_text
from headrace.domain.launch import LaunchRequest

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import ResourceTypeType
    from mypy_boto3_ec2.type_defs import FilterTypeDef, TagSpecificationTypeDef, TagTypeDef

STACK, RUN, ROLE = "headrace:stack", "headrace:run-id", "headrace:role"
ATTEMPT, DEADLINE = "headrace:attempt", "headrace:deadline-at"


def instance_tags(stack: str, request: LaunchRequest) -> dict[str, str]:
    """Return the tags of a machine, which it reads from its own metadata as well."""
    return {
        STACK: stack,
        RUN: request.run_id,
        ROLE: request.role,
        ATTEMPT: str(request.attempt),
        DEADLINE: to_text(request.deadline_at),
        "Name": f"{request.run_id}-{request.role}",
    }


def specification(kind: ResourceTypeType, tags: Mapping[str, str]) -> TagSpecificationTypeDef:
    """Return the tags in the form of a launch call."""
    return {"ResourceType": kind, "Tags": [{"Key": name, "Value": value} for name, value in tags.items()]}


def filters(tags: Mapping[str, str]) -> list[FilterTypeDef]:
    """Return filters for what carries all of these tags."""
    return [{"Name": f"tag:{name}", "Values": [value]} for name, value in tags.items()]


def tags_of(listed: Iterable[TagTypeDef]) -> dict[str, str]:
    """Return tags by name."""
    return {tag.get("Key", ""): tag.get("Value", "") for tag in listed}
