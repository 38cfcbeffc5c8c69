"""Reads the capacity reservation or capacity block that a job names: for which type, where, and whether it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.aws.places import Place
from headrace.domain.instants import to_text
from headrace.domain.launch import LaunchRequest
from headrace.ports import LaunchFault

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef


class Reservation(NamedTuple):
    """One reservation as it stands."""

    reservation_id: str
    instance_type: str
    zone: str
    kind: str
    """`default`, or `capacity-block`, which is bought for a span of time and needs a market option of its own."""
    state: str
    starts_at: str
    free: int


def read_reservation(client: EC2Client, reservation_id: str) -> Reservation:
    """Return the reservation. Raises ClientError for one that EC2 does not know."""
    (found,) = client.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    return Reservation(
        reservation_id=reservation_id,
        instance_type=found["InstanceType"],
        zone=found.get("AvailabilityZone", ""),
        kind=found.get("ReservationType", "default"),
        state=found["State"],
        starts_at=_starts_at(found),
        free=found.get("AvailableInstanceCount", 0),
    )


def _starts_at(found: CapacityReservationTypeDef) -> str:
    return to_text(found["StartDate"]) if "StartDate" in found else "an instant that EC2 does not tell"


def fault_of(found: Reservation, request: LaunchRequest, place: Place | None) -> LaunchFault | None:
    """Return why the launch cannot use the reservation, or None."""
    if found.instance_type not in request.instance_types:
        why = f"it is for {found.instance_type}, the plan asks for {', '.join(request.instance_types)}"
        return _fault(found, "other", f"{why}; name that type in the job, or another reservation")
    if place is None:
        why = f"it is in {found.zone}, where the run cannot be"
        return _fault(found, "other", f"{why}; add a subnet there, or name a reservation in the zone of the storage")
    if found.state != "active":
        return _fault(found, "capacity", f"it is {found.state} and starts at {found.starts_at}")
    if found.free < request.count:
        return _fault(found, "capacity", f"it has {found.free} free machines of the {request.count} asked for")
    return None


def _fault(found: Reservation, meaning: str, message: str) -> LaunchFault:
    return LaunchFault(
        found.instance_type,
        found.zone,
        "capacity" if meaning == "capacity" else "other",
        f"reservation {found.reservation_id}: {message}",
    )
