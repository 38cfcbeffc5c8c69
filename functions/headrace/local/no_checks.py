"""The Checks port where there is nothing to be found out: one machine, or a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.domain.launch import LaunchRequest
from headrace.domain.preflight import Findings
from headrace.domain.schedule import Reservation


class NoChecks:
    """No quota, no policy, no image can be in the way of a process; reservations are those that a test gives."""

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self._reservations = {one.reservation_id: one for one in reservations}

    def reservation(self, reservation_id: str) -> Reservation | None:
        """Return the reservation, if it was given; the job of one that was not begins at once."""
        return self._reservations.get(reservation_id)

    def look(self, _requests: Sequence[LaunchRequest], _quota_codes: Sequence[str]) -> Findings:
        """Return nothing found."""
        return Findings()

    def try_launches(self, _requests: Sequence[LaunchRequest]) -> tuple[str, ...]:
        """Return no refusal."""
        return ()

    def try_terminate(self, _node_ids: Sequence[str]) -> None:
        """Return no refusal."""
