"""Uploads the job's log to the run bucket whenever it has grown."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from headrace_agent.job_log import JobLog
from headrace_agent.s3 import S3_ERRORS
from headrace_agent.text import first_line

if TYPE_CHECKING:
    from obstore.store import S3Store

LOG = logging.getLogger(__name__)


class LogShipper:
    """Ships one log in the background, at most once per period."""

    def __init__(self, log: JobLog, store: S3Store, key: str, period_seconds: float) -> None:
        self._log = log
        self._store = store
        self._key = key
        self._period_seconds = period_seconds
        self._shipped_bytes = -1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Stop the background work, then ship what is left; gives up after about that long."""
        self._ended.set()
        self._thread.join(seconds)
        last = threading.Thread(target=self._ship, daemon=True)
        last.start()
        last.join(seconds)

    def _run(self) -> None:
        while not self._ended.wait(self._period_seconds):
            self._ship()

    def _ship(self) -> None:
        if self._log.total_bytes == self._shipped_bytes:
            return
        whole = self._log.path.with_suffix(".upload")
        try:
            covered = self._log.compose(whole)
            obstore.put(self._store, self._key, Path(whole), max_concurrency=2)
            self._shipped_bytes = covered
        except S3_ERRORS as error:
            LOG.warning("the log was not uploaded: %s", first_line(error))
        finally:
            whole.unlink(missing_ok=True)
