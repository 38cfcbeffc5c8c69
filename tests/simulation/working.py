"""What must hold of the machines of a run while they work, judged by the ledger and the phases on the run's row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.domain.instants import from_text
from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.site import START, SimulatedSite
from tests.simulation.helpless import helpless_seconds
from tests.simulation.ledger import Ledger, MachineRecord

NOTICED_SECONDS = 600.0
"""Two missed heartbeats and what it takes to end an execution."""
FUNCTION_SECONDS = 60.0
"""Longer lives no function, so a launch that began before the tombstone is over by then."""
MARK_SECONDS = 0.001
"""What is cut off the instants of phases."""
BOOT_SECONDS = 600.0
SILENT_SECONDS = 900.0
"""What a machine is allowed beyond its boot time-out that was never heard."""


def at_work(faults: Sequence[Fault], ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    """Yield every breach, given the faults that struck."""
    patience = NOTICED_SECONDS + sum(map(helpless_seconds, faults))
    yield from _unnoticed(ledger, row, patience)
    yield from _unfenced(ledger, row)
    yield from _two_writers(ledger, row)
    yield from _launched_late(ledger, row, patience - NOTICED_SECONDS)
    yield from _training(ledger, row, patience)
    yield from _killed(ledger, row)
    yield from _never_heard(ledger, row, patience - NOTICED_SECONDS)


def seconds_after_start(instant: str) -> float:
    """Return the second of the simulation."""
    return (from_text(instant) - START).total_seconds()


def _unnoticed(ledger: Ledger, row: dict[str, Any], patience: float) -> Iterator[str]:
    """Yield each machine that was lost in the midst of a job, when the run went on for long as if it were there."""
    closed = ledger.closed.get(row["execution_arn"], (ledger.now(), ""))[0]
    machines = ledger.of_run(row["run_id"])
    began = min((one.started_s for one in machines if one.started_s is not None), default=None)
    for one in machines:
        is_cut_short = one.lost_s is not None and _worked(one, began)
        lost = max(one.lost_s or 0.0, began or 0.0)
        # Whoever lets the others go, or saves what was left, has noticed; ending the execution may then take its time.
        noticed = [other.released_s for other in machines if other.released_s is not None] + salvages(row)
        went_on = min([closed, *(at for at in noticed if at > lost)]) - lost
        if is_cut_short and went_on > patience:
            yield f"unnoticed: {one.node_id} was lost at its job, and the run went on for {went_on:.0f} s"


def _worked(one: MachineRecord, began: float | None) -> bool:
    """Tell whether the machine ran the job, or held the data of one: its agent may die then, not the machine."""
    if one.role == "storage":
        return began is not None and "Dataset Staged" in one.said and one.released_by == "reclaimed"
    return "Job Started" in one.said and {"Job Done", "Job Failed"}.isdisjoint(one.said)


def _unfenced(ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    """Yield each machine that was wired into its fleet while one that was told to go before could still act."""
    machines = ledger.of_run(row["run_id"])
    end = seconds_after_start(row["tombstone_at"]) if row["tombstone_at"] else ledger.now()
    for one in machines:
        wired = one.configured_s
        if wired is None or wired >= end:
            continue
        others = (other for other in machines if other.role == one.role and other is not one)
        if stale := [other for other in others if _was_leaving(other, one.launched_s, wired)]:
            yield f"unfenced: {one.node_id} was configured while {stale[0].node_id}, which it replaced, went on"


def _was_leaving(one: MachineRecord, launched: float, wired: float) -> bool:
    """Tell whether the machine had been told to go when another was launched, and still ran when that was wired."""
    return one.asked_s is not None and one.asked_s <= launched and (one.released_s is None or wired < one.released_s)


def salvages(row: dict[str, Any]) -> list[float]:
    """Return when storage nodes began to save what was left, if they did."""
    return [seconds_after_start(mark["at"]) for mark in row["phases"] if mark["name"] == "salvaging"]


def _two_writers(ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    """Yield each machine that could still write what a storage node had begun to save."""
    for began in salvages(row):
        for one in ledger.of_run(row["run_id"]):
            if one.role == "compute" and (one.released_s is None or one.released_s > began + MARK_SECONDS):
                yield f"two writers: {one.node_id} went on when what it had written was saved from a storage node"


def _launched_late(ledger: Ledger, row: dict[str, Any], pardon: float) -> Iterator[str]:
    if row["tombstone_at"] is None:
        return
    limit = seconds_after_start(row["tombstone_at"]) + FUNCTION_SECONDS + pardon
    for one in ledger.of_run(row["run_id"]):
        if one.launched_s > limit:
            yield f"late launch: {one.node_id} came {one.launched_s - limit:.0f} s later than any that had begun before"


def _training(ledger: Ledger, row: dict[str, Any], patience: float) -> Iterator[str]:
    """Yield a training that went on without a job, or beyond its hours."""
    marks = [(mark["name"], seconds_after_start(mark["at"])) for mark in row["phases"]]
    for (name, began), (_, ended) in zip(marks, [*marks[1:], ("", ledger.now())], strict=True):
        if name != "training":
            continue
        if ended - began > row["max_seconds"] + patience:
            yield f"hours: {row['run_id']} trained for {ended - began:.0f} s, allowed are {row['max_seconds']:.0f} s"
        workers = [one for one in ledger.of_run(row["run_id"]) if one.role == "compute" and _stood(one, began, ended)]
        idle = [one for one in workers if one.started_s is None or one.started_s > ended]
        if idle and ended - began > patience:
            yield f"idle: {idle[0].node_id} began no job, and the run waited {ended - began:.0f} s for it"


def _stood(one: MachineRecord, began: float, ended: float) -> bool:
    return one.launched_s < began and (one.released_s is None or one.released_s >= ended)


def _killed(ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    """Yield each machine that the sweep took from a run that was neither over nor being ended."""
    closed = ledger.closed.get(row["execution_arn"], (ledger.now(), ""))[0]
    end = min(closed, seconds_after_start(row["tombstone_at"]) if row["tombstone_at"] else closed)
    for one in ledger.of_run(row["run_id"]):
        if one.released_by.startswith("OnSweep") and (one.released_s or 0.0) < end:
            yield f"killed: {one.node_id} of {row['run_id']} was ended by the sweep in the midst of the run"


def _never_heard(ledger: Ledger, row: dict[str, Any], pardon: float) -> Iterator[str]:
    """Yield each machine that never spoke and was kept for long."""
    for one in ledger.of_run(row["run_id"]):
        end = ledger.now() if one.released_s is None else one.released_s
        if not one.said and end - one.launched_s > BOOT_SECONDS + SILENT_SECONDS + pardon:
            yield f"never heard: {one.node_id} was kept {end - one.launched_s:.0f} s without a word"


def incomplete_data(site: SimulatedSite, ledger: Ledger, run_id: str) -> Iterator[str]:
    """Yield what a run that succeeded left out of its data set, by what it counted and what it had staged."""
    folder = f"runs/{run_id}/"
    keys = site.objects.keys("headrace-runs")
    least, most = ({f"s3://data/{key}" for key in held} for held in (site.objects.keys("data"), ledger.dataset))
    for kind in ("dataset/part-", "staging/"):
        parts = [key for key in keys if key.startswith(folder + kind)]
        files = {
            file["source"] for part in parts for file in json.loads(site.objects.get("headrace-runs", part))["files"]
        }
        if parts and not least <= files <= most:
            yield f"false success: {kind} of {run_id} has {len(files)} of the {len(most)} files of the data set"
