"""The Checks port where there is nothing to be found out: one machine, or a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain.launch import LaunchRequest
from headrace.domain.preflight import Findings


class NoChecks:
    """No quota, no policy, no image can be in the way of a process."""

    def look(self, _requests: Sequence[LaunchRequest], _quota_codes: Sequence[str]) -> Findings:
        """Return nothing found."""
        return Findings()

    def try_launches(self, _requests: Sequence[LaunchRequest]) -> tuple[str, ...]:
        """Return no refusal."""
        return ()

    def try_terminate(self, _node_ids: Sequence[str]) -> None:
        """Return no refusal."""
