"""What is asked of a cloud for one fleet: how many machines, of which types, where, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.domain.model import Capacity
from headrace.domain.plan import Placement, Role


@dataclass(frozen=True)
class Beside:
    """The fleet that comes later and is scarcer: a launch before it goes to a zone where that one can come, too."""

    instance_types: tuple[str, ...]
    reservation: str | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """One all-or-reported launch; the same `client_token` gives the same nodes again."""

    run_id: str
    role: Role
    attempt: int
    count: int
    instance_types: tuple[str, ...]
    """Acceptable types, best first."""
    market: Capacity
    region: str
    client_token: str
    deadline_at: datetime
    reservation: str | None = None
    zones: tuple[str, ...] = ()
    """Where the run's other machines are, which is where these must be; any zone when it is empty."""
    last_zones: tuple[str, ...] = ()
    """Zones that an earlier attempt found short, which are tried after all others."""
    beside: Beside | None = None
    placement: Placement = "one zone"
    """`cluster`: all of them in one cluster placement group where it has room, or else without it."""
