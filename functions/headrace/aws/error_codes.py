"""What the error codes of EC2 mean for a launch or a termination: one table, so that no caller compares texts."""

from __future__ import annotations

from typing import Literal

from botocore.exceptions import ClientError

Meaning = Literal["capacity", "quota", "denied", "other"]

MEANINGS: dict[str, Meaning] = {
    # Another zone or type may have it (EC2 API reference, client and server error codes).
    "InsufficientInstanceCapacity": "capacity",
    "InsufficientHostCapacity": "capacity",
    "InsufficientCapacityOnHost": "capacity",
    "InsufficientReservedInstanceCapacity": "capacity",
    "InsufficientCapacity": "capacity",
    "InsufficientFreeAddressesInSubnet": "capacity",
    "ReservationCapacityExceeded": "capacity",
    "UnfulfillableCapacity": "capacity",
    "SpotMaxPriceTooLow": "capacity",
    "Unsupported": "capacity",
    "InvalidFleetConfiguration": "capacity",
    # The same machines may come without their placement group, which is tried next.
    "InvalidPlacementGroup.Unknown": "capacity",
    "PlacementGroupLimitExceeded": "capacity",
    # An account limit: the same everywhere in the region, so nothing is tried again.
    "VcpuLimitExceeded": "quota",
    "InstanceLimitExceeded": "quota",
    "MaxSpotInstanceCountExceeded": "quota",
    "MaxFleetCountExceeded": "quota",
    "FleetLimitExceeded": "quota",
    "MaxIOPSLimitExceeded": "quota",
    "VolumeLimitExceeded": "quota",
    "AddressLimitExceeded": "quota",
    "NetworkInterfaceLimitExceeded": "quota",
    # A policy or the state of the account.
    "UnauthorizedOperation": "denied",
    "AccessDenied": "denied",
    "AccessDeniedException": "denied",
    "AuthFailure": "denied",
    "OptInRequired": "denied",
    "PendingVerification": "denied",
    "Blocked": "denied",
}
UNKNOWN_IDS = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})


def code_of(error: ClientError) -> str:
    """Return the error code, such as `VcpuLimitExceeded`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: ClientError) -> str:
    """Return `code: message` as the service gave them."""
    return f"{code_of(error)}: {error.response.get('Error', {}).get('Message', '')}"


def meaning_of(code: str) -> Meaning:
    """Return what an error code means for a launch; `other` for one that the table does not have."""
    return MEANINGS.get(code, "other")
