"""Saves the job's results while it runs, and all that is left when it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace_agent.open_files import open_for_writing
from headrace_agent.result_files import FileState, Skipped, look
from headrace_agent.results_journal import ResultsJournal
from headrace_agent.s3 import S3_ERRORS
from headrace_agent.text import first_line
from headrace_agent.upload import FileChanged, NotSaved, save

if TYPE_CHECKING:
    from obstore.store import S3Store

LOG = logging.getLogger(__name__)
SETTLED_SECONDS = 2.0
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 10.0


class ResultsSaver:
    """Saves files below `root` as objects below `prefix`; one thread at a time may call it."""

    def __init__(self, root: Path, store: S3Store, prefix: str, journal: ResultsJournal) -> None:
        self.skipped: list[Skipped] = []
        self._root = root
        self._store = store
        self._prefix = prefix
        self._journal = journal
        self._seen: dict[str, tuple[FileState, float]] = {}

    def save_settled(self, writers: Callable[[], Iterable[int]], now: float, stop: threading.Event) -> None:
        """Save each file that has not changed for 2 seconds and that none of the `writers` holds open.

        `now` is a monotonic time in seconds. What cannot be saved now is left for later.
        """
        settled = self._settled(self._unsaved(), now)
        if not settled:
            return
        busy = open_for_writing(writers())
        real_root = self._root.resolve()
        for file in settled:
            if stop.is_set():
                return
            if str(real_root / file.path) not in busy:
                self._try_to_save(file)

    def save_all(self, until: float) -> dict[str, str]:
        """Save all that is left, trying again until that monotonic time. Return what is not saved, with reasons."""
        wait_seconds = FIRST_WAIT_SECONDS
        while True:
            failures = {file.path: reason for file in self._unsaved() if (reason := self._try_to_save(file))}
            if not failures or time.monotonic() + wait_seconds > until:
                return failures
            time.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)

    def _unsaved(self) -> list[FileState]:
        files, self.skipped = look(self._root, self._prefix)
        return [file for file in files if not self._journal.is_saved(file)]

    def _settled(self, files: list[FileState], now: float) -> list[FileState]:
        self._seen = {file.path: self._first_seen(file, now) for file in files}
        return [file for file in files if now - self._seen[file.path][1] >= SETTLED_SECONDS]

    def _first_seen(self, file: FileState, now: float) -> tuple[FileState, float]:
        before = self._seen.get(file.path)
        return before if before and before[0] == file else (file, now)

    def _try_to_save(self, file: FileState) -> str | None:
        """Save one file. Return why it was not saved, or None."""
        try:
            saved = save(
                self._store, self._root, file, self._prefix + file.path, lambda: self._journal.forget(file.path)
            )
            self._journal.record(saved)
        except FileNotFoundError as error:
            return self._when_gone(file, error)
        except (FileChanged, NotSaved, *S3_ERRORS) as error:
            reason = first_line(error)
            LOG.warning("not saved yet: %s: %s", file.path, reason)
            return reason
        return None

    def _when_gone(self, file: FileState, error: FileNotFoundError) -> str | None:
        return first_line(error) if (self._root / file.path).exists() else None
