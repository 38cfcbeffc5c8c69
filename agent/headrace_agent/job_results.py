"""Keeps one job's results safe: in the background while it runs, completely when it ends, then the manifest."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace_agent.bounded import OutOfTime, within
from headrace_agent.checkpoints import Checkpoint, newest_of, newest_saved, publish, still_saved
from headrace_agent.fields import ConfigError
from headrace_agent.reach import reach_of
from headrace_agent.results import ResultsSaver
from headrace_agent.results_journal import ResultsJournal
from headrace_agent.results_manifest import ManifestHead, write_manifest
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.snapshots import Snapshots
from headrace_agent.text import first_line, short
from headrace_agent.work import Work

LOG = logging.getLogger(__name__)
LOOK_SECONDS, LONGEST_LOOK_SECONDS = 1.0, 60.0
IDLE_SHARE = 0.004
"""How much of a core may be spent on looking for new results while there are none."""

SNAPSHOTS_FOLDER = ".headrace-snapshots"
NAMED_MAX = 5
NEVER = threading.Event()
"""A sign to stop that is never given."""


def folder_prefix(prefix: str) -> str:
    """Return the prefix as that of a folder: without a slash at its end, keys would also begin like its neighbours."""
    return prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def checkpoint_key(run_prefix: str, node_rank: int) -> str:
    """Return the key of what says which checkpoint of a rank is the newest, whatever machine the rank is on."""
    return f"{run_prefix}checkpoints/rank-{node_rank}.json"


def journal_path(place: ResultsPlace) -> Path:
    """Return the journal's file, its name made of where the results are saved, so that any machine finds it again."""
    saved_at = f"{place.bucket}/{folder_prefix(place.prefix)}"
    return place.journal / f"results-{hashlib.sha256(saved_at.encode()).hexdigest()[:12]}.sqlite3"


@dataclass(frozen=True)
class ResultsPlace:
    """Whose results they are, where they are now, and where they are saved."""

    node_id: str
    attempt: int
    node_rank: int
    bucket: str
    prefix: str
    root: Path
    journal: Path
    """The folder of what is known of saved results."""
    is_left: bool = False
    """After the machine was lost: its file system may hold older versions than those that were saved."""


@dataclass(frozen=True)
class SavedResults:
    """What is durable at the end: the manifest's key, or None and the reason why there is none or it is not whole."""

    manifest: str | None
    files: int
    bytes: int
    trouble: str | None


class JobResults:
    """The results of one job on one node."""

    def __init__(self, work: Work, place: ResultsPlace) -> None:
        node = work.node
        prefix = folder_prefix(place.prefix)
        store = reach_of(node, work.task.config)(place.bucket)
        self._place = place
        self._journal = ResultsJournal(journal_path(place))
        snapshots = Snapshots(place.root.with_name(SNAPSHOTS_FOLDER))
        self._saver = ResultsSaver(place.root, store, prefix, self._journal, snapshots, is_left=place.is_left)
        self._run_store = open_bucket(node.run_bucket)
        self._head = ManifestHead(
            run_id=node.run_id,
            attempt=place.attempt,
            node_id=place.node_id,
            bucket=place.bucket,
            prefix=prefix,
            run_prefix=node.prefix,
            folder=f"results/{place.node_id}/",
        )
        self._checkpoint_key = checkpoint_key(node.prefix, place.node_rank)
        self._published: tuple[Checkpoint, ...] = ()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, writers: Callable[[], Iterable[int]]) -> None:
        """Begin to save files once they are settled and none of the processes `writers()` holds them open."""
        self._thread = threading.Thread(target=self._watch, args=(writers,), name="results", daemon=True)
        self._thread.start()

    def progress(self) -> dict[str, Any]:
        """Return the body of a Results Progress."""
        files, total_bytes = self._journal.totals()
        return {"files": files, "bytes": total_bytes}

    def finish(self, grace_seconds: float, stop: threading.Event = NEVER) -> SavedResults:
        """Save all that is left and write the manifest, within the grace; every process of the job must be gone.

        It ends sooner, with what is saved until then, when told to `stop`.
        """
        until = time.monotonic() + grace_seconds
        try:
            trouble = within(grace_seconds, lambda: self._save_rest(until, stop))
            manifest = within(max(5.0, until - time.monotonic()), self._write_manifest)
        except OutOfTime:
            trouble, manifest = f"results were not saved within {grace_seconds:g} seconds", None
        except S3_ERRORS as error:
            trouble, manifest = f"the results manifest was not written: {first_line(error)}", None
        self._saver.close()
        files, total_bytes = self._journal.totals()
        return SavedResults(manifest, files, total_bytes, trouble)

    def _watch(self, writers: Callable[[], Iterable[int]]) -> None:
        pause_seconds = LOOK_SECONDS
        while not self._ended.wait(pause_seconds):
            began = time.thread_time()
            is_unsaved = self._saver.save_settled(writers, time.monotonic(), self._ended)
            if is_unsaved:
                self._try_to_publish()
            looked_seconds = 0.0 if is_unsaved else time.thread_time() - began
            pause_seconds = min(LONGEST_LOOK_SECONDS, max(LOOK_SECONDS, looked_seconds / IDLE_SHARE))

    def close(self) -> None:
        """Close the journal, so that the file system under it can be unmounted."""
        self._journal.close()

    def _save_rest(self, until: float, stop: threading.Event) -> str | None:
        self._ended.set()
        if self._thread:
            self._thread.join()
        failures = self._saver.save_all(until, stop)
        self._try_to_publish()
        if not failures:
            return None
        named = [f"{path} ({reason})" for path, reason in list(failures.items())[:NAMED_MAX]]
        others = f" and {len(failures) - NAMED_MAX} more" if len(failures) > NAMED_MAX else ""
        return short(f"{len(failures)} results are not saved: {', '.join(named)}{others}")

    def _try_to_publish(self) -> None:
        """Tell where the newest complete checkpoints are, once they are saved; a later look makes good what fails."""
        try:
            newest = self._newest()
            if newest != self._published:
                publish(self._run_store, self._checkpoint_key, self._head.bucket, newest)
                self._published = newest
        except (ConfigError, *S3_ERRORS) as error:
            LOG.warning("the newest checkpoints could not be published: %s", first_line(error))

    def _newest(self) -> tuple[Checkpoint, ...]:
        """Return the newest complete checkpoints that are saved.

        Of a machine that was lost these may be newer than what its file system holds, but were published then.
        """
        found = newest_saved(self._place.root, self._journal)
        if not self._place.is_left:
            return found
        known = {one.name for one in found}
        before = still_saved(self._run_store, self._checkpoint_key, self._journal)
        return newest_of([*found, *(one for one in before if one.name not in known)])

    def _write_manifest(self) -> str:
        return write_manifest(self._run_store, self._head, self._journal, self._saver.skipped)
