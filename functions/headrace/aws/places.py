"""Where a launch may go: zones with a subnet of ours that offer the types, and the scarcer fleet's types as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headrace.domain.errors import InfeasibleJob
from headrace.domain.launch import LaunchRequest
from headrace.ports import LaunchFault

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

Offers = Mapping[str, frozenset[str]]
"""Zone to the instance types that it offers."""


class Place(NamedTuple):
    """One zone to try, with the types that it offers, best first."""

    zone: str
    subnet_id: str
    instance_types: tuple[str, ...]
    group: str = ""
    """The cluster placement group that the machines are launched into; none when it is empty."""


def require_region(wanted: str, own: str) -> None:
    """Raise InfeasibleJob when a run should be in another region than the stack that was asked for it."""
    if wanted != own:
        raise InfeasibleJob(
            f"the job's data are in {wanted}, so its machines belong there, and this stack is in {own}. Submit the job "
            f"to a stack in {wanted}, or write `region: {own}` at its data to read them from afar"
        )


def read_offers(client: EC2Client, instance_types: Iterable[str]) -> Offers:
    """Return which of these types each zone of the region offers."""
    found: dict[str, set[str]] = {}
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": sorted(set(instance_types))}],
    )
    for page in pages:
        for offer in page["InstanceTypeOfferings"]:
            found.setdefault(offer["Location"], set()).add(offer["InstanceType"])
    return {zone: frozenset(types) for zone, types in found.items()}


def places_for(request: LaunchRequest, subnets: Mapping[str, str], offers: Offers) -> tuple[Place, ...]:
    """Return the zones to try: first those with the best types of the scarcer fleet, then those with its own best.

    `subnets` maps zones to subnets.
    """
    beside = request.beside.instance_types if request.beside else ()
    found = [
        (
            zone in request.last_zones,
            _rank(beside, offers.get(zone, frozenset())),
            _rank(request.instance_types, offers[zone]),
            number,
            zone,
        )
        for number, zone in enumerate(subnets)
        if _fits(request, zone, offers)
    ]
    return tuple(
        Place(zone, subnets[zone], tuple(one for one in request.instance_types if one in offers[zone]))
        for *_, zone in sorted(found)
    )


def grouped(request: LaunchRequest, places: tuple[Place, ...], groups: Mapping[str, str]) -> tuple[Place, ...]:
    """Return the places to try: every zone's cluster placement group first, where machines should meet in one.

    A zone without room in its group may have room elsewhere, and such machines still train, more slowly. Storage is
    never asked into the group: it comes first, and would decide where the scarcer machines have to find room.
    """
    if request.placement != "cluster":
        return places
    return (*(one._replace(group=groups[one.zone]) for one in places if one.zone in groups), *places)


def _fits(request: LaunchRequest, zone: str, offers: Offers) -> bool:
    offered = offers.get(zone, frozenset())
    if request.zones and zone not in request.zones:
        return False
    if request.beside and not offered.intersection(request.beside.instance_types):
        return False
    return bool(offered.intersection(request.instance_types))


def _rank(wanted: tuple[str, ...], offered: frozenset[str]) -> int:
    return next((rank for rank, one in enumerate(wanted) if one in offered), len(wanted))


def nowhere(request: LaunchRequest, subnets: Mapping[str, str], offers: Offers) -> tuple[LaunchFault, ...]:
    """Return why there is no place: for each type, the zones that offer it and those that could be used."""
    usable = ", ".join(request.zones or subnets) or "none"
    beside = f" beside one of {', '.join(request.beside.instance_types)}" if request.beside else ""
    return tuple(
        LaunchFault(
            one,
            "no zone",
            "other",
            f"offered in {', '.join(sorted(zone for zone, types in offers.items() if one in types)) or 'no zone'}, and "
            f"may go to {usable}{beside}; add a subnet in a zone that fits, or choose another type or region",
        )
        for one in request.instance_types
    )
