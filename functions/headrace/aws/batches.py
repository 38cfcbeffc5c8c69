"""The launch calls of one fleet in one zone: at most 100 machines in each, with tokens that a repeat finds again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from headrace.aws.places import Place
from headrace.aws.tags import RUN, STACK, instance_tags, specification
from headrace.domain.launch import LaunchRequest
from headrace.domain.plan import Role
from headrace.domain.schedule import CAPACITY_BLOCK, Reservation

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import InstanceTypeType
    from mypy_boto3_ec2.type_defs import (
        CreateFleetRequestTypeDef,
        FleetLaunchTemplateConfigRequestTypeDef,
        FleetLaunchTemplateOverridesRequestTypeDef,
        RunInstancesRequestTypeDef,
        TagSpecificationTypeDef,
    )

BATCH = 100
"""What EC2 advises for one call (aws-facts.md section 2)."""
Arch = Literal["x86_64", "arm64"]
ArchOf = Callable[[str], Arch]


def batches(count: int, attempt: int = 1) -> Iterator[int]:
    """Yield the sizes of the calls that launch that many machines.

    A call comes whole or not at all, so each later attempt asks in calls of half the size: there may be room for some.
    """
    most = max(1, BATCH >> (attempt - 1))
    for start in range(0, count, most):
        yield min(most, count - start)


def token_of(request: LaunchRequest, zone: str, number: int, group: str = "") -> str:
    """Return the client token of one call: the same for the same launch, at most the 64 characters that EC2 takes.

    A call with a placement group and one without differ, and so do their tokens.
    """
    where = f"{zone}/{group}" if group else zone
    return hashlib.sha256(f"{request.client_token}/{where}/{number}".encode()).hexdigest()


@dataclass(frozen=True)
class Launcher:
    """Knows the stack's launch templates: one for each role and architecture, and one for each type that has EFA."""

    stack: str
    arch_of: ArchOf
    efa_types: frozenset[str] = field(default_factory=frozenset)
    """Compute types whose template names their EFA interfaces."""

    def fleet_call(self, request: LaunchRequest, place: Place, number: int, size: int) -> CreateFleetRequestTypeDef:
        """Return the arguments of CreateFleet for one batch: all of it in this zone, or nothing.

        Types are tried in their order (API reference, CreateFleet: `prioritized`; for spot the order is only a wish).
        """
        call: CreateFleetRequestTypeDef = {
            "Type": "instant",
            "ClientToken": token_of(request, place.zone, number, place.group),
            "LaunchTemplateConfigs": self._configs(request, place),
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": size,
                "DefaultTargetCapacityType": "spot" if request.market == "spot" else "on-demand",
            },
            "TagSpecifications": [
                specification("fleet", {STACK: self.stack, RUN: request.run_id}),
                *self._machine_tags(request),
            ],
        }
        if request.market == "spot":
            call["SpotOptions"] = {
                "AllocationStrategy": "capacity-optimized-prioritized",
                "SingleAvailabilityZone": True,
                "MinTargetCapacity": size,
            }
        else:
            call["OnDemandOptions"] = {
                "AllocationStrategy": "prioritized",
                "SingleAvailabilityZone": True,
                "MinTargetCapacity": size,
            }
        return call

    def reserved_call(
        self, request: LaunchRequest, place: Place, number: int, size: int, reservation: Reservation
    ) -> RunInstancesRequestTypeDef:
        """Return the arguments of RunInstances for one batch in a reservation: all of it, or nothing.

        CreateFleet cannot name a reservation: its overrides have no such field, only a template does.
        """
        call = self.plain_call(request, place, size)
        call["ClientToken"] = token_of(request, place.zone, number)
        call["CapacityReservationSpecification"] = {
            "CapacityReservationTarget": {"CapacityReservationId": reservation.reservation_id}
        }
        if reservation.kind == CAPACITY_BLOCK:
            call["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        return call

    def plain_call(self, request: LaunchRequest, place: Place, size: int) -> RunInstancesRequestTypeDef:
        """Return the arguments of RunInstances for machines of the place's best type."""
        instance_type = place.instance_types[0]
        call: RunInstancesRequestTypeDef = {
            "LaunchTemplate": {"LaunchTemplateName": self.template(request.role, instance_type), "Version": "$Latest"},
            "InstanceType": cast("InstanceTypeType", instance_type),
            "MinCount": size,
            "MaxCount": size,
            "TagSpecifications": self._machine_tags(request),
        }
        return {**call, "Placement": {"GroupName": place.group}} if place.group else call

    def _machine_tags(self, request: LaunchRequest) -> list[TagSpecificationTypeDef]:
        tags = instance_tags(self.stack, request)
        return [specification("instance", tags), specification("volume", tags)]

    def _configs(self, request: LaunchRequest, place: Place) -> list[FleetLaunchTemplateConfigRequestTypeDef]:
        overrides: dict[str, list[FleetLaunchTemplateOverridesRequestTypeDef]] = {}
        for rank, one in enumerate(place.instance_types):
            override: FleetLaunchTemplateOverridesRequestTypeDef = {
                "InstanceType": cast("InstanceTypeType", one),
                "SubnetId": place.subnet_id,
                "Priority": float(rank),
            }
            if place.group:
                override["Placement"] = {"GroupName": place.group}
            overrides.setdefault(self.template(request.role, one), []).append(override)
        return [
            {"LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"}, "Overrides": ranked}
            for name, ranked in overrides.items()
        ]

    def template(self, role: Role, instance_type: str) -> str:
        """Return the name of the launch template for machines of that role and type."""
        plain = f"{self.stack}-{role}-{self.arch_of(instance_type)}"
        return f"{plain}-{instance_type}" if role == "compute" and instance_type in self.efa_types else plain
