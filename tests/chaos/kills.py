"""Kills one process of a real run at one moment, lets the next command clean up, and says what is wrong then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.domain.receipt import Receipt
from headrace.domain.run import RunRow
from tests.chaos.moments import Moment
from tests.chaos.watched_run import WatchedRun

LOOK_SECONDS = 0.004
RUN_SECONDS = 90.0
LEFT_SECONDS = 30.0
CLEANER_KILLED = 0.25
"""How often a soak kills the command that cleans up as well; the next one has to do it all."""

CLEANER_SECONDS = (0.4, 2.5)


@dataclass(frozen=True)
class Ending:
    """What came of one run; `wrong` is empty when all held, `was_hit` tells whether a process was killed in time."""

    moment: str
    seed: int
    was_hit: bool
    status: str
    reason: str
    seconds: float
    wrong: tuple[str, ...]


def kill_at(moment: Moment, folder: Path, seed: int, *, is_delayed: bool = False) -> Ending:
    """Run a job below `folder`, kill one process at the moment, run `headrace ls`, and look at what is left.

    A delayed kill comes up to `moment.delay_seconds_max` after the moment, as the seed says, and sometimes
    the command that cleans up is killed too.
    """
    began, chance = time.monotonic(), random.Random(seed)  # noqa: S311 - a seed is the point
    delay_seconds = chance.uniform(0, moment.delay_seconds_max) if is_delayed else 0.0
    run = WatchedRun(folder, seed, **moment.job)
    process = run.start()
    try:
        was_hit = _strike(moment, run, process, delay_seconds, chance)
        saved, left = run.journaled(), run.written() if moment.lends else set()
        is_over = _has_ended(process, RUN_SECONDS)
    finally:
        process.kill()
        process.wait()
    if is_delayed and chance.random() < CLEANER_KILLED:
        _kill_cleaner(run, chance.uniform(*CLEANER_SECONDS))
    wrong = [] if is_over else [f"not over after {RUN_SECONDS:.0f} s"]
    wrong += [
        *_wrong_in_cleaning(run),
        *_left(run),
        *_wrong_in_table(run, moment, was_hit=was_hit),
        *_wrong_in_results(run, saved),
        *(f"left on a storage node and not saved: {name}" for name in sorted(left - run.intact())),
    ]
    row = next(iter(run.rows()), None)
    status, reason = (row.status, str(row.failure or "")) if row else ("no run", "")
    return Ending(moment.name, seed, was_hit, status, reason, time.monotonic() - began, tuple(wrong))


def _strike(
    moment: Moment, run: WatchedRun, process: subprocess.Popen[bytes], delay_seconds: float, chance: random.Random
) -> bool:
    """Kill one process of the moment's kind once the moment has come; return whether that happened."""
    end, pause = time.monotonic() + RUN_SECONDS, threading.Event()
    while process.poll() is None and time.monotonic() < end:
        if moment.has_come(run):
            pause.wait(delay_seconds)
            victims = moment.victims(run, process.pid)
            if victims and _killed(chance.choice(sorted(victims))):
                return True
        pause.wait(LOOK_SECONDS)
    return False


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _has_ended(process: subprocess.Popen[bytes], within_seconds: float) -> bool:
    try:
        process.wait(within_seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_cleaner(run: WatchedRun, seconds: float) -> None:
    cleaner = run.start("ls")
    threading.Event().wait(seconds)
    cleaner.kill()
    cleaner.wait()


def _wrong_in_cleaning(run: WatchedRun) -> Iterator[str]:
    cleaner = run.start("ls")
    if not _has_ended(cleaner, LEFT_SECONDS):
        yield f"ls was not over after {LEFT_SECONDS:.0f} s"
        cleaner.kill()
        cleaner.wait()
    elif cleaner.returncode:
        yield f"ls ended with {cleaner.returncode}: {run.printed()[-2000:]}"


def _left(run: WatchedRun) -> Iterator[str]:
    end, pause = time.monotonic() + LEFT_SECONDS, threading.Event()
    while left := run.processes():
        if time.monotonic() > end:
            yield f"processes are left: {left}"
            return
        pause.wait(0.1)


def _wrong_in_table(run: WatchedRun, moment: Moment, *, was_hit: bool) -> Iterator[str]:
    rows = run.rows()
    if len(rows) != 1:
        yield f"{len(rows)} runs are in the table"
        return
    (row,) = rows
    allowed = moment.ends if was_hit else frozenset({"SUCCEEDED"})
    if row.status not in allowed:
        yield f"the run is {row.status} ({row.failure}), allowed: {sorted(allowed)}"
    yield from _wrong_in_receipts(run, row)


def _wrong_in_receipts(run: WatchedRun, row: RunRow) -> Iterator[str]:
    receipts = run.receipts()
    if [file.name for file in receipts] != [str(row.report_key).rpartition("/")[2]]:
        yield f"the row names {row.report_key}, and there are {[file.name for file in receipts]}"
        return
    receipt = Receipt.model_validate_json(receipts[0].read_text())
    if receipt.status != row.status:
        yield f"the receipt says {receipt.status} and the row {row.status}"
    unreleased = [one.resource_id for one in receipt.resources if one.released_at is None]
    if unreleased:
        yield f"never released: {unreleased}"
    if receipt.results_files > len(run.intact()):
        yield f"the receipt counts {receipt.results_files} results, {len(run.intact())} are intact"


def _wrong_in_results(run: WatchedRun, journaled: set[str]) -> Iterator[str]:
    intact = run.intact()
    if broken := (journaled | run.listed_in_manifests()) - intact:
        yield f"said to be saved and not intact: {sorted(broken)[:5]}"
    if any(row.status == "SUCCEEDED" for row in run.rows()) and intact != set(run.expected):
        yield f"SUCCEEDED with {len(intact)} of {len(run.expected)} results: a false success"
