"""Saves the results that compute nodes left on this storage node's disks, in their place."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace_agent.action_failed import ActionFailed
from headrace_agent.config import LeftResults
from headrace_agent.fields import ConfigError
from headrace_agent.foreign import Unreachable
from headrace_agent.job_results import JobResults, ResultsPlace, journal_path
from headrace_agent.kernel_names import NotThere
from headrace_agent.left_volume import left_folder
from headrace_agent.s3 import S3_ERRORS
from headrace_agent.scratch import left_journal
from headrace_agent.spool import Outcome
from headrace_agent.text import SHORT_CHARACTERS, first_line, short
from headrace_agent.work import Work

LOG = logging.getLogger(__name__)
TROUBLES = (ActionFailed, ConfigError, NotThere, Unreachable, sqlite3.Error, *S3_ERRORS)
"""What keeps one volume from being salvaged, each with a text that says why."""

AT_ONCE = 8
"""Volumes that are salvaged at once, since each may take the whole grace, and the control plane waits for one."""

TROUBLE_CHARACTERS_MIN = 60


@dataclass(frozen=True)
class Salvaged:
    """What is saved of one volume; `is_counted` when that is known, since its journal was read."""

    node_rank: int
    is_counted: bool
    files: int = 0
    bytes: int = 0
    trouble: str | None = None


def run_salvage(work: Work) -> Outcome | None:
    """Save what each volume holds. Return Results Salvaged, or None when told to stop: all can be done again."""
    task = work.task.config.salvage
    if task is None:
        raise ConfigError("config.json has no part 'salvage'")
    grace_seconds = task.results_grace_seconds
    with ThreadPoolExecutor(AT_ONCE, "salvage") as threads:
        done = list(threads.map(lambda left: _salvaged(work, left, grace_seconds), task.left))
    return None if work.stop.is_set() else Outcome("Results Salvaged", _body(done))


def _salvaged(work: Work, left: LeftResults, grace_seconds: float) -> Salvaged:
    """Save what one volume holds; its trouble is not that of the others."""
    if work.stop.is_set():
        return Salvaged(left.node_rank, is_counted=False)
    try:
        with left_folder(work, left) as folder:
            if folder is None:
                return Salvaged(left.node_rank, is_counted=True)
            return _saved(work, left, folder, grace_seconds)
    except TROUBLES as error:
        return Salvaged(left.node_rank, is_counted=False, trouble=_nothing_more(left, first_line(error)))
    except Exception as error:
        LOG.exception("the salvage of volume %s failed", left.volume.volume_id)
        reason = f"the agent failed: {type(error).__name__}: {first_line(error)}"
        return Salvaged(left.node_rank, is_counted=False, trouble=_nothing_more(left, reason))


def _nothing_more(left: LeftResults, reason: str) -> str:
    return f"nothing more is saved of volume {left.volume.volume_id}: {reason}"


def _saved(work: Work, left: LeftResults, folder: Path, grace_seconds: float) -> Salvaged:
    place = _place(left, folder)
    if links := [one.name for one in (place.root, place.journal) if one.is_symlink()]:
        raise ConfigError(f"{' and '.join(links)} on it is a link, and what another machine wrote is never followed")
    if not place.root.is_dir() and not journal_path(place).exists():
        return Salvaged(left.node_rank, is_counted=True)
    results = JobResults(work, place)
    try:
        saved = results.finish(grace_seconds, work.stop)
    finally:
        results.close()
    return Salvaged(left.node_rank, True, saved.files, saved.bytes, saved.trouble)


def _place(left: LeftResults, folder: Path) -> ResultsPlace:
    """Return whose results they are: the compute node's, so that they are found where its own would be."""
    return ResultsPlace(
        node_id=left.node_id,
        attempt=left.attempt,
        node_rank=left.node_rank,
        bucket=left.results_bucket,
        prefix=left.results_prefix,
        root=folder / "results",
        journal=left_journal(folder),
        is_left=True,
    )


def _body(done: Sequence[Salvaged]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "ranks": [one.node_rank for one in done if one.is_counted],
        "files": sum(one.files for one in done),
        "bytes": sum(one.bytes for one in done),
    }
    trouble = _in_words([(one.node_rank, one.trouble) for one in done if one.trouble])
    return body | ({"trouble": trouble} if trouble else {})


def _in_words(troubles: Sequence[tuple[int, str]]) -> str:
    """Return all troubles in one text that fits into an event, each with a fair share of it."""
    share = max(TROUBLE_CHARACTERS_MIN, SHORT_CHARACTERS // max(1, len(troubles)) - 2)
    return short("; ".join(short(f"rank {rank}: {text}", share) for rank, text in troubles))
