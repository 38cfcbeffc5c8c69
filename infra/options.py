"""What a person may choose, read from CDK context once and checked, so that constructs receive plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructs import Node

STACK_NAME = re.compile(r"^[a-z][a-z0-9-]{0,19}$")
"""Twenty characters leave room for the longest name that is built from it within AWS's 64."""
IMAGES = ("storage-arm64", "storage-x86_64", "compute-arm64", "compute-x86_64")
ENDPOINTS = ("ssm", "ssmmessages", "events")
"""What machines call besides S3. The agent of Systems Manager takes its commands over ssmmessages where it can reach
it, and needs ec2messages only where it cannot (Systems Manager user guide, "Reference: ec2messages, ssmmessages, and
other API operations")."""
ROLE_ARN = re.compile(r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$", re.ASCII)
SECRET_ARN = re.compile(
    r"^arn:(aws|aws-cn|aws-us-gov):secretsmanager:[a-z0-9-]{1,32}:[0-9]{12}:secret:[\w/+=.@-]{1,512}$", re.ASCII
)
_REGION_KEYS = {"vpc", "zones", "endpoints", "images", "image_builder", "efa_interfaces"}
_VPC_KEYS = {"id", "subnets", "route_tables", "endpoints"}


class BadOption(ValueError):
    """A value in the context is wrong; the text says which, what was found and what to write."""


@dataclass(frozen=True)
class Subnet:
    """One subnet that machines may be launched in."""

    subnet_id: str
    zone: str


@dataclass(frozen=True)
class GivenVpc:
    """A network that exists; endpoints are made in it only when asked for, in its first subnet."""

    vpc_id: str
    subnets: tuple[Subnet, ...]
    route_tables: tuple[str, ...]
    has_endpoints_made: bool


@dataclass(frozen=True)
class Region:
    """What differs between regions."""

    name: str
    vpc: GivenVpc | None = None
    zones: int = 3
    endpoints: tuple[str, ...] = ENDPOINTS
    images: Mapping[str, str] = field(default_factory=dict)
    """AMI ids that a person made, by name; what is not named is built."""
    builder_subnet: str | None = None
    builder_security_group: str | None = None
    efa_interfaces: Mapping[str, int] = field(default_factory=dict)
    """How many EFA interfaces each compute type has, for a launch template of its own."""


@dataclass(frozen=True)
class Options:
    """Everything that is chosen for the whole app."""

    stack: str
    regions: tuple[Region, ...]
    data_buckets: tuple[str, ...] = ()
    results_buckets: tuple[str, ...] = ()
    data_roles: tuple[str, ...] = ()
    """ARNs of the roles that jobs may name for buckets of other accounts."""
    data_secrets: tuple[str, ...] = ()
    """ARNs of the secrets that jobs may name for S3s that are not AWS's."""
    kms_key: str | None = None
    """`create`, the ARN of a key, or None for keys that AWS keeps."""
    permissions_boundary: str | None = None
    alarm_email: str | None = None
    dashboard: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def endpoints_for_data(self) -> tuple[str, ...]:
        """Return what machines call to reach buckets that are not ours, in a network without internet."""
        return ("sts",) * bool(self.data_roles) + ("secretsmanager",) * bool(self.data_secrets)


def read_options(node: Node) -> Options:
    """Return the options in the app's context. Raises BadOption."""

    def given(name: str) -> Any:
        return node.try_get_context(name)

    stack = str(given("stack") or "headrace")
    if not STACK_NAME.match(stack):
        raise BadOption(f"context stack: {stack!r} should be 1 to 20 lower-case letters, digits and hyphens")
    return Options(
        stack=stack,
        regions=_regions(given("regions")),
        data_buckets=_names("data_buckets", given("data_buckets")),
        results_buckets=_names("results_buckets", given("results_buckets")),
        data_roles=_arns("data_roles", given("data_roles"), ROLE_ARN, "arn:aws:iam::<12 digits>:role/<name>"),
        data_secrets=_arns(
            "data_secrets", given("data_secrets"), SECRET_ARN, "arn:aws:secretsmanager:<region>:<account>:secret:<name>"
        ),
        kms_key=_text("kms_key", given("kms_key")),
        permissions_boundary=_text("permissions_boundary", given("permissions_boundary")),
        alarm_email=_text("alarm_email", given("alarm_email")),
        dashboard=str(given("dashboard")).lower() == "true",
        tags=_mapping("tags", given("tags")),
    )


def _regions(given: Any) -> tuple[Region, ...]:
    """Return the regions of a list, of `a,b`, or of a mapping from region to what is chosen for it."""
    if isinstance(given, Mapping):
        return tuple(_region(name, _mapping(f"regions.{name}", value)) for name, value in given.items())
    names = _names("regions", given) or ("us-east-1",)
    return tuple(Region(name) for name in names)


def _region(name: str, given: Mapping[str, Any]) -> Region:
    where = f"regions.{name}"
    _refuse_unknown(where, given, _REGION_KEYS)
    images = _mapping(f"{where}.images", given.get("images"))
    _refuse_unknown(f"{where}.images", images, set(IMAGES))
    builder = _mapping(f"{where}.image_builder", given.get("image_builder"))
    return Region(
        name=name,
        vpc=_vpc(f"{where}.vpc", given["vpc"]) if given.get("vpc") else None,
        zones=int(given.get("zones", 3)),
        endpoints=_names(f"{where}.endpoints", given.get("endpoints")) or ENDPOINTS,
        images=images,
        builder_subnet=_text(f"{where}.image_builder.subnet", builder.get("subnet")),
        builder_security_group=_text(f"{where}.image_builder.security_group", builder.get("security_group")),
        efa_interfaces={key: int(value) for key, value in _mapping(where, given.get("efa_interfaces")).items()},
    )


def _vpc(where: str, given: Any) -> GivenVpc:
    vpc = _mapping(where, given)
    _refuse_unknown(where, vpc, _VPC_KEYS)
    subnets = tuple(Subnet(str(one["id"]), str(one["zone"])) for one in vpc.get("subnets", ()))
    if not vpc.get("id") or not subnets:
        raise BadOption(f'context {where}: give "id" and "subnets": [{{"id": "subnet-…", "zone": "us-east-1a"}}, …]')
    zones = [subnet.zone for subnet in subnets]
    if len(set(zones)) < len(zones):
        raise BadOption(f"context {where}.subnets: one subnet per zone, which is all that a fleet takes; found {zones}")
    return GivenVpc(
        str(vpc["id"]),
        subnets,
        _names(f"{where}.route_tables", vpc.get("route_tables")),
        bool(vpc.get("endpoints", False)),
    )


def _refuse_unknown(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(given) - known):
        raise BadOption(f"context {where}: {', '.join(unknown)} is not known; known are {', '.join(sorted(known))}")


def _typed(kind: Callable[[Any], bool], wanted: str, name: str, given: Any) -> Any:
    if not kind(given):
        raise BadOption(f"context {name}: should be {wanted}, found {given!r}")
    return given


def _text(name: str, given: Any) -> str | None:
    return _typed(lambda one: isinstance(one, str), "text", name, given) if given else None


def _mapping(name: str, given: Any) -> dict[str, Any]:
    return dict(_typed(lambda one: isinstance(one, Mapping), "an object", name, given)) if given else {}


def _arns(name: str, given: Any, form: re.Pattern[str], wanted: str) -> tuple[str, ...]:
    """Return whole ARNs; one with a wildcard would open more than anybody named."""
    found = _names(name, given)
    if wrong := [one for one in found if not form.match(one)]:
        raise BadOption(f"context {name}: {', '.join(map(repr, wrong))} should be {wanted}, without wildcards")
    return found


def _names(name: str, given: Any) -> tuple[str, ...]:
    """Return the names of a list, or of text with commas, which is what `cdk -c` gives."""
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    found = _typed(lambda one: isinstance(one, list | tuple), "a list of names", name, given) if given else ()
    return tuple(str(one) for one in found)
