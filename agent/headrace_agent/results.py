"""Saves the job's results while it runs, and all that is left when it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headrace_agent.open_files import open_for_writing
from headrace_agent.result_files import FileState, Skipped, look
from headrace_agent.results_journal import ResultsJournal, SavedFile
from headrace_agent.s3 import S3_ERRORS
from headrace_agent.snapshots import Snapshots
from headrace_agent.text import first_line
from headrace_agent.upload import PART_BYTES, FileChanged, NotSaved, save

if TYPE_CHECKING:
    from obstore.store import S3Store

LOG = logging.getLogger(__name__)
SETTLED_SECONDS = 2.0
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 10.0
SMALL_BYTES = PART_BYTES // 8
SMALL_AT_ONCE = 4
"""Small files wait for S3 rather than for the line; together they hold no more memory than one part of a large one."""

BATCH_FILES = 64
"""What is saved is written down together, in one transaction that waits for the disk."""


class ResultsSaver:
    """Saves files below `root` as objects below `prefix`; one thread at a time may call it.

    With `is_left` the files are those of a machine that was lost, and never take the place of newer ones.
    """

    def __init__(
        self,
        root: Path,
        store: S3Store,
        prefix: str,
        journal: ResultsJournal,
        snapshots: Snapshots,
        *,
        is_left: bool = False,
    ) -> None:
        self.skipped: list[Skipped] = []
        self._root = root
        self._store = store
        self._prefix = prefix
        self._journal = journal
        self._snapshots = snapshots
        self._seen: dict[str, tuple[FileState, float]] = {}
        self._is_saved = journal.is_saved_or_older if is_left else journal.is_saved
        self._pool = ThreadPoolExecutor(SMALL_AT_ONCE, "results")

    def save_settled(self, writers: Callable[[], Iterable[int]], now: float, stop: threading.Event) -> bool:
        """Save each file that has not changed for 2 seconds and that none of the `writers` holds open.

        `now` is a monotonic time in seconds. Return whether anything is left that is not saved.
        """
        unsaved = self._unsaved()
        settled = self._settled(unsaved, now)
        if settled:
            busy = open_for_writing(writers())
            real_root = self._root.resolve()
            self._save([file for file in settled if str(real_root / file.path) not in busy], stop)
        return bool(unsaved)

    def save_all(self, until: float, stop: threading.Event) -> dict[str, str]:
        """Save all that is left, the newest first, trying again until that monotonic time or until told to stop.

        Return what is not saved, with reasons. The newest first, since what is not saved when a machine is taken away
        is lost, and a job goes on from its newest checkpoint.
        """
        wait_seconds = FIRST_WAIT_SECONDS
        while True:
            newest_first = sorted(self._unsaved(), key=lambda file: -file.mtime_ns)
            failures = self._save(newest_first, stop)
            if not failures or time.monotonic() + wait_seconds > until or stop.wait(wait_seconds):
                return failures
            wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)

    def close(self) -> None:
        """End the threads; one whose request hangs is not waited for, since the grace is over."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _unsaved(self) -> list[FileState]:
        self.skipped = []
        return [file for file in look(self._root, self._prefix, self.skipped) if not self._is_saved(file)]

    def _settled(self, files: list[FileState], now: float) -> list[FileState]:
        self._seen = {file.path: self._first_seen(file, now) for file in files}
        return [file for file in files if now - self._seen[file.path][1] >= SETTLED_SECONDS]

    def _first_seen(self, file: FileState, now: float) -> tuple[FileState, float]:
        before = self._seen.get(file.path)
        return before if before and before[0] == file else (file, now)

    def _save(self, files: Iterable[FileState], stop: threading.Event) -> dict[str, str]:
        """Save the files, in their order. Return what was not saved, with reasons."""
        failures: dict[str, str] = {}
        rest = iter(files)
        while not stop.is_set() and (batch := list(islice(rest, BATCH_FILES))):
            self._journal.forget(file.path for file in batch)
            saved = []
            for file, outcome in zip(batch, self._outcomes(batch), strict=True):
                if isinstance(outcome, SavedFile):
                    saved.append(outcome)
                elif outcome is not None:
                    failures[file.path] = outcome
            self._journal.record(saved)
        return failures

    def _outcomes(self, batch: list[FileState]) -> Iterator[SavedFile | str | None]:
        """Yield for each file what was saved, or why not, or None for one that is gone; small ones several at once."""
        small = {file.path: self._pool.submit(self._try_to_save, file) for file in batch if file.bytes <= SMALL_BYTES}
        for file in batch:
            yield small[file.path].result() if file.path in small else self._try_to_save(file)

    def _try_to_save(self, file: FileState) -> SavedFile | str | None:
        try:
            return save(self._store, self._root, file, self._prefix + file.path, self._snapshots)
        except FileNotFoundError as error:
            return first_line(error) if (self._root / file.path).exists() else None
        except (FileChanged, NotSaved, *S3_ERRORS) as error:
            reason = first_line(error)
            LOG.warning("not saved yet: %s: %s", file.path, reason)
            return reason
