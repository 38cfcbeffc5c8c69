"""Ends runs whose driving process was killed, so that nothing of them stays behind."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

from headrace.client.run_table import RunTable
from headrace.client.site import OpenSite, Site
from headrace.domain.errors import HeadraceError
from headrace.domain.run import RunRow
from headrace.local.owner import is_alive


def is_abandoned(row: RunRow) -> bool:
    """Tell whether the run is not over although the process that drove it is gone."""
    return row.ended_at is None and row.owner_process is not None and not is_alive(row.owner_process)


def recover_dead_runs(
    table: RunTable, home: Path, open_site: OpenSite, on_fault: Callable[[str], None]
) -> tuple[str, ...]:
    """End every abandoned run and return the ids of those that are over now.

    Several processes may try at once, and one does it. A run that cannot be ended now is told to `on_fault` and left
    for the next time.
    """
    if not any(is_abandoned(row) for row in table.rows()):
        return ()
    with (home / "recovery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        abandoned = tuple(row.run_id for row in table.rows() if is_abandoned(row))
        if not abandoned:
            return ()
        with open_site(home, ()) as site:
            return tuple(run_id for run_id in abandoned if _is_recovered(site, run_id, on_fault))


def _is_recovered(site: Site, run_id: str, on_fault: Callable[[str], None]) -> bool:
    try:
        site.recover(run_id)
    except HeadraceError as error:
        on_fault(str(error))
        return False
    return True
