"""Holding a run to its budget and hours at each heartbeat: warned once near a limit, ended at it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headrace.domain.instants import from_text, to_text
from headrace.domain.lifecycle import Activity, Outcome
from headrace.domain.nodeconfig import Notice
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.spending import WARN_AT, Limit, limits_of, seconds_left, tightest
from headrace.handlers._notices import publish_warning, tell_jobs
from headrace.handlers._rows import change_run
from headrace.ports import Cloud


def run_limits(cloud: Cloud, run: RunRow, nodes: Sequence[NodeRow]) -> tuple[Limit, ...]:
    """Return the limits of the run now; ending it takes a missed heartbeat and the machines' own grace at most."""
    settings = cloud.settings
    release_seconds = settings.heartbeat_timeout_seconds + settings.stop_grace_seconds
    return limits_of(run, nodes, cloud.clock.now(), release_seconds)


def hold_to_limits(cloud: Cloud, run: RunRow, nodes: Sequence[NodeRow], activity: Activity, so_far: Outcome) -> Outcome:
    """Return a failure when a limit of the run is reached, else the outcome so far; warn the run near a limit."""
    limits = run_limits(cloud, run, nodes)
    worst = tightest(limits)
    if worst.used >= 1:
        return Outcome("failed", worst.error, worst.because)
    if worst.used >= WARN_AT and _is_warning_due(cloud, run):
        notice = Notice(seconds_left=seconds_left(limits), because=worst.because)
        _warn(cloud, run, nodes, activity, notice)
    return so_far


def _is_warning_due(cloud: Cloud, run: RunRow) -> bool:
    """Tell whether nobody has warned, or somebody began to and was cut short."""
    if run.is_warning_out:
        return False
    if run.warned_at is None:
        return True
    patience = timedelta(seconds=cloud.settings.heartbeat_timeout_seconds)
    return cloud.clock.now() - from_text(run.warned_at) > patience


def _warn(cloud: Cloud, run: RunRow, nodes: Sequence[NodeRow], activity: Activity, notice: Notice) -> None:
    claim = {"warned_at": to_text(cloud.clock.now()), "warning": notice.because}
    if not change_run(cloud, run.run_id, claim, {"warned_at": run.warned_at}):
        return
    publish_warning(cloud, run, notice)
    if activity == "training":
        tell_jobs(cloud, run, nodes, notice)
    change_run(cloud, run.run_id, {"is_warning_out": True})
