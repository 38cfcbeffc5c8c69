"""When a run's machines are launched whose compute is reserved: data are ready when the reservation begins."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from headrace.domain import calibration
from headrace.domain.amounts import duration_text
from headrace.domain.errors import InfeasibleJob
from headrace.domain.instants import from_text, to_text
from headrace.domain.model import Contract
from headrace.domain.plan import FleetPlan, OptionPlan, PhasePlan

CAPACITY_BLOCK = "capacity-block"
TAKEN_EARLY = timedelta(minutes=30)
"""How long before the end of a block EC2 begins to end its machines (EC2 user guide, "Work with Capacity Blocks")."""

SETTLING = timedelta(seconds=60)
"""Allowed to a reservation that begins; EC2 may show it as active minutes later, and take launches meanwhile."""

OVER = frozenset({"expired", "cancelled", "failed", "payment-failed", "unsupported", "unavailable"})
"""States from which no reservation comes back (EC2 API reference, CapacityReservation, `state`)."""


class Reservation(Contract):
    """A capacity reservation or a capacity block, as it stands."""

    reservation_id: str
    kind: str = "default"
    """`default`, or `capacity-block`, which is bought for a span of time and needs a market option of its own."""
    state: str = "active"
    instance_type: str
    zone: str
    count: int
    free: int = 0
    starts_at: str | None = None
    ends_at: str | None = None

    def has_begun(self, now: datetime) -> bool:
        """Tell whether machines may be launched into it, whatever its state shows yet."""
        return self.state == "active" or (self.starts_at is not None and from_text(self.starts_at) <= now)

    @property
    def taken_at(self) -> datetime | None:
        """When its machines are taken away; None where they may stay, as those of other reservations do."""
        if self.kind != CAPACITY_BLOCK or self.ends_at is None:
            return None
        return from_text(self.ends_at) - TAKEN_EARLY


class Schedule(NamedTuple):
    """From when on machines are launched, compute apart, and when the reserved ones are taken."""

    launch_at: datetime
    compute_at: datetime
    taken_at: datetime | None
    because: str


def schedule(option: OptionPlan, found: Reservation, now: datetime) -> Schedule:
    """Return when to launch so that data are ready, even if all goes slowly, when the reservation begins.

    Raises InfeasibleJob for a reservation that is not for these machines, is over, or ends before the job can.
    """
    compute = next(one for one in option.fleets if one.role == "compute")
    _require_fit(compute, found, now)
    begins = now if found.has_begun(now) else from_text(str(found.starts_at)) + SETTLING
    launch_at = max(now, begins - timedelta(seconds=sum(map(_slow_seconds, _before(option)))))
    ready_at = launch_at + timedelta(seconds=sum(one.eta_s for one in _before(option)))
    _require_time(option, found, max(begins, ready_at))
    return Schedule(launch_at, begins, found.taken_at, _because(found, launch_at, begins))


def _before(option: OptionPlan) -> tuple[PhasePlan, ...]:
    """Return the phases that end before compute is launched."""
    names = [one.name for one in option.phases]
    return option.phases[: names.index("compute")]


def _slow_seconds(phase: PhasePlan) -> float:
    if phase.name == "storage":
        return calibration.LAUNCH_SLOW_S
    return phase.eta_s * calibration.STAGING_SLOWDOWN


def _require_fit(compute: FleetPlan, found: Reservation, now: datetime) -> None:
    wanted = (compute.instance_type, *compute.fallback_types)
    if found.instance_type not in wanted:
        raise _refusal(found, f"is for {found.instance_type}, the plan asks for {', '.join(wanted)}; name its type")
    if found.count < compute.count:
        raise _refusal(found, f"has {found.count} machines, the plan asks for {compute.count}; ask for fewer")
    if found.state in OVER:
        raise _refusal(found, f"is {found.state}; name one that is active or scheduled")
    if not found.has_begun(now) and found.starts_at is None:
        raise _refusal(found, f"is {found.state}, and EC2 does not tell when it starts; name one that does")


def _require_time(option: OptionPlan, found: Reservation, begins: datetime) -> None:
    taken_at = found.taken_at
    if taken_at is None:
        return
    rest = option.phases[len(_before(option)) :]
    needed, left = sum(one.eta_s for one in rest), (taken_at - begins).total_seconds()
    if needed <= left:
        return
    hours = (left - sum(one.eta_s for one in rest if one.name != "training")) / 3600
    fits = f"duration_hours: {int(hours * 100) / 100:g}" if hours > 0 else "nothing in what is left of it"
    raise _refusal(
        found,
        f"ends at {found.ends_at}, and its machines are taken {duration_text(TAKEN_EARLY.total_seconds())} before; the "
        f"run needs {duration_text(needed)} from {to_text(begins)} on. Name a longer one; fits: {fits}",
    )


def _refusal(found: Reservation, what: str) -> InfeasibleJob:
    return InfeasibleJob(f"compute.reservation: {found.reservation_id} {what}")


def _because(found: Reservation, launch_at: datetime, begins: datetime) -> str:
    if launch_at == begins:
        return f"{found.reservation_id} begins at {to_text(begins)}, and nothing is launched before"
    ahead = (begins - launch_at).total_seconds()
    return (
        f"{found.reservation_id} begins at {to_text(begins)}; storage is launched {duration_text(ahead)} before, so "
        "that data are ready then even if all goes slowly"
    )
