"""Ends runs whose driving process was killed, so that nothing of them stays behind."""

from __future__ import annotations

import fcntl
from pathlib import Path

from headrace.client.run_table import RunTable
from headrace.client.site import OpenSite
from headrace.domain.run import RunRow
from headrace.local.owner import is_alive


def is_abandoned(row: RunRow) -> bool:
    """Tell whether the run is not over although the process that drove it is gone."""
    return row.ended_at is None and row.owner_process is not None and not is_alive(row.owner_process)


def recover_dead_runs(table: RunTable, home: Path, open_site: OpenSite) -> tuple[str, ...]:
    """End every abandoned run and return their ids; several processes may try at once, and one does it."""
    if not any(is_abandoned(row) for row in table.rows()):
        return ()
    with (home / "recovery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        abandoned = tuple(row.run_id for row in table.rows() if is_abandoned(row))
        if abandoned:
            with open_site(home, ()) as site:
                for run_id in abandoned:
                    site.recover(run_id)
    return abandoned
