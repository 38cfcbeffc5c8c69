"""What the sweep thinks of each machine and run it sees, and on what it acts: pure, with the time passed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from headrace.domain.instants import from_text
from headrace.domain.run import RunRow
from headrace.domain.spending import Limit

Action = Literal["leave", "terminate", "decommission", "stop", "clean"]
STUCK_SECONDS = 300
"""After this long under a tombstone, machines are terminated even while a decommission claims to be at it.

With two looks before the tombstone and two after, no machine outlives its run by 15 minutes (reliability.md section 4).
"""


class Machine(NamedTuple):
    """A machine as the cloud lists it, whatever the table says."""

    node_id: str
    run_id: str
    is_terminated: bool
    launched_at: datetime


class RunFacts(NamedTuple):
    """A run's row and what else is known of it.

    `is_driven`: its execution is running; `is_decommissioning`: so is the decommission started last for it;
    `exceeded`: the limit that it has reached, if it has; `is_empty`: no machine of it is listed but terminated ones.
    """

    row: RunRow
    is_driven: bool
    is_decommissioning: bool
    exceeded: Limit | None
    is_empty: bool


class Rules(NamedTuple):
    """How patient the sweep is."""

    grace_seconds: float
    boot_grace_seconds: float


class Opinion(NamedTuple):
    """What should become of a machine or run; `finding` is the reason as one word, `because` in words."""

    subject: str
    action: Action
    finding: str
    because: str


class Suspicion(NamedTuple):
    """An earlier look at the same subject."""

    finding: str
    first_seen_at: datetime


class Decision(NamedTuple):
    """What to do now, what to look at again, and which observations are of no use any more."""

    act: tuple[Opinion, ...]
    watch: tuple[Opinion, ...]
    clear: tuple[str, ...]


def judge_machine(machine: Machine, run: RunFacts | None, now: datetime, rules: Rules) -> Opinion:
    """Return what should become of the machine; `run` None means that no row has exactly its run id."""
    subject = f"node/{machine.node_id}"
    if machine.is_terminated:
        return Opinion(subject, "leave", "terminated", "it is terminated")
    age_seconds = (now - machine.launched_at).total_seconds()
    if age_seconds < rules.boot_grace_seconds:
        return Opinion(subject, "leave", "young", f"it was launched {age_seconds:.0f} s ago")
    if run is None:
        return Opinion(subject, "terminate", "ownerless", f"no run is called {machine.run_id!r}")
    return _owned(subject, run, now)


def _owned(subject: str, run: RunFacts, now: datetime) -> Opinion:
    row = run.row
    if row.ended_at:
        return Opinion(subject, "terminate", "run-ended", f"run {row.run_id} ended at {row.ended_at}")
    if row.tombstone_at:
        return _under_tombstone(subject, run, row.tombstone_at, now)
    if run.is_driven:
        return Opinion(subject, "leave", "live", f"run {row.run_id} is live")
    return Opinion(subject, "leave", "run-undriven", f"run {row.run_id} has lost its execution and is decommissioned")


def _under_tombstone(subject: str, run: RunFacts, tombstone_at: str, now: datetime) -> Opinion:
    row = run.row
    if not (run.is_driven or run.is_decommissioning):
        why = f"run {row.run_id} has a tombstone since {tombstone_at} and no decommission is under way"
        return Opinion(subject, "terminate", "tombstoned", why)
    if now - from_text(tombstone_at) > timedelta(seconds=STUCK_SECONDS):
        why = f"the decommission of run {row.run_id} has not ended it since {tombstone_at}"
        return Opinion(subject, "terminate", "stuck", why)
    return Opinion(subject, "leave", "decommissioning", f"a decommission of run {row.run_id} is under way")


def judge_run(run: RunFacts, now: datetime, rules: Rules) -> Opinion:
    """Return what should become of the run: nothing, a stop, a decommission, or the removal of what it left."""
    row = run.row
    subject = f"run/{row.run_id}"
    if row.ended_at:
        return _ended(subject, run, row.ended_at, now, rules)
    if run.is_decommissioning:
        return Opinion(subject, "leave", "decommissioning", "a decommission is under way")
    if not run.is_driven:
        why = f"its execution {row.execution_arn} is not running and it has not reported"
        return Opinion(subject, "decommission", "undriven", why)
    if row.tombstone_at:
        return Opinion(subject, "leave", "decommissioning", "its own decommission is under way")
    if run.exceeded:
        return Opinion(subject, "stop", "over-limit", f"{run.exceeded.error}: {run.exceeded.because}")
    return Opinion(subject, "leave", "live", "its execution is running, within its limits")


def _ended(subject: str, run: RunFacts, ended_at: str, now: datetime, rules: Rules) -> Opinion:
    if run.row.swept_at:
        return Opinion(subject, "leave", "swept", f"nothing was left of it at {run.row.swept_at}")
    if not run.is_empty:
        return Opinion(subject, "leave", "not-empty", "it has ended and its machines go first")
    if now - from_text(ended_at) < timedelta(seconds=rules.grace_seconds):
        return Opinion(subject, "leave", "just-ended", f"it ended at {ended_at}")
    return Opinion(subject, "clean", "ended", f"it ended at {ended_at}")


def decide(opinions: Iterable[Opinion], seen: Mapping[str, Suspicion], now: datetime, grace_seconds: float) -> Decision:
    """Return what to act on: that which was found to be the same at least `grace_seconds` ago.

    Only what has ended is cleaned at once, since nobody can need it. Observations of what is no longer suspect, or
    is suspect for another reason, are cleared.
    """
    opinions = tuple(opinions)
    act = [one for one in opinions if one.action == "clean"]
    watch: list[Opinion] = []
    suspects = {one.subject: one for one in opinions if one.action not in ("leave", "clean")}
    for one in suspects.values():
        earlier = seen.get(one.subject)
        is_old = earlier is not None and (now - earlier.first_seen_at).total_seconds() >= grace_seconds
        if earlier is not None and earlier.finding == one.finding and is_old:
            act.append(one)
        else:
            watch.append(one)
    cleared = [
        subject
        for subject, earlier in seen.items()
        if subject not in suspects or suspects[subject].finding != earlier.finding
    ]
    return Decision(tuple(act), tuple(watch), tuple(cleared))
