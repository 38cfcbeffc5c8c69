"""Ending a run whose driving process died: what the rule on the execution's status does at AWS."""

from __future__ import annotations

from headrace.domain.errors import HeadraceError
from headrace.domain.run import RunRow
from headrace.local.control_plane import ControlPlane
from headrace.local.marker import OWNER, RUN, kill_marked
from headrace.local.owner import is_alive
from headrace.local.watchdogs import kill_watchdogs


class RunIsDriven(HeadraceError):
    """A run cannot be recovered, since the process that drives it lives."""


class RecoveryFailed(HeadraceError):
    """The decommission of an abandoned run did not succeed; recovering again is safe."""


def recover_run(row: RunRow, plane: ControlPlane, own_process: str | None) -> None:
    """Kill all processes of the run, decommission it with the real handlers, and report it as failed.

    Raises RunIsDriven, RecoveryFailed. A run that has reported stays as it is.
    """
    if row.ended_at is not None:
        return
    owner = row.owner_process
    if owner is not None and owner != own_process and is_alive(owner):
        raise RunIsDriven(f"run {row.run_id} is driven by process {owner.partition(':')[0]}; stop it instead")
    kill_watchdogs(row.run_id)
    kill_marked({RUN: row.run_id})
    if owner is not None and owner != own_process:
        kill_marked({OWNER: owner})
    _decommission(row, plane)


def _decommission(row: RunRow, plane: ControlPlane) -> None:
    failure = {"state": "the run", "error": "ProcessDied", "cause": "the process that drove the run died"}
    name = f"{row.run_id}-recovered-{plane.cloud.entropy.token_hex(2)}"
    given = {"run_id": row.run_id, "report": True, "failure": failure}
    ended = plane.wait(plane.cloud.executions.start("decommission", name, given))
    if ended.status != "SUCCEEDED":
        raise RecoveryFailed(f"run {row.run_id}: {ended.status}: {ended.error}: {ended.cause}. Recover it again")
