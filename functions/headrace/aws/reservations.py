"""Reads the capacity reservation or capacity block that a job names: for which type, where, and whether it is open."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from headrace.aws.places import Place
from headrace.domain.instants import to_text
from headrace.domain.launch import LaunchRequest
from headrace.domain.schedule import OVER, Reservation
from headrace.ports import LaunchFault

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


def read_reservation(client: EC2Client, reservation_id: str) -> Reservation:
    """Return the reservation. Raises ClientError for one that EC2 does not know."""
    (found,) = client.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    return Reservation(
        reservation_id=reservation_id,
        instance_type=found["InstanceType"],
        zone=found.get("AvailabilityZone", ""),
        kind=found.get("ReservationType", "default"),
        state=found["State"],
        count=found.get("TotalInstanceCount", 0),
        free=found.get("AvailableInstanceCount", 0),
        starts_at=to_text(found["StartDate"]) if "StartDate" in found else None,
        ends_at=to_text(found["EndDate"]) if "EndDate" in found else None,
    )


def fault_of(found: Reservation, request: LaunchRequest, place: Place | None, now: datetime) -> LaunchFault | None:
    """Return why the launch cannot use the reservation, or None.

    One that has begun is tried whatever it shows: EC2 may call it active, and count what is free, minutes later.
    """
    if found.instance_type not in request.instance_types:
        why = f"it is for {found.instance_type}, the plan asks for {', '.join(request.instance_types)}"
        return _fault(found, "other", f"{why}; name that type in the job, or another reservation")
    if place is None:
        why = f"it is in {found.zone}, where the run cannot be"
        return _fault(found, "other", f"{why}; add a subnet there, or name a reservation in the zone of the storage")
    if found.state in OVER or not found.has_begun(now):
        starts = found.starts_at or "an instant that EC2 does not tell"
        return _fault(found, "capacity", f"it is {found.state} and starts at {starts}")
    if found.state == "active" and found.free < request.count:
        return _fault(found, "capacity", f"it has {found.free} free machines of the {request.count} asked for")
    return None


def _fault(found: Reservation, meaning: str, message: str) -> LaunchFault:
    return LaunchFault(
        found.instance_type,
        found.zone,
        "capacity" if meaning == "capacity" else "other",
        f"reservation {found.reservation_id}: {message}",
    )
