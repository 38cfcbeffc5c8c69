"""Counts what staging has done and what it could not do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from headrace_agent.config import StageTask
from headrace_agent.spool import Outcome
from headrace_agent.text import short

MISSING_MAX = 20
PATH_CHARACTERS = 256
PATH_JSON_BYTES = 384


class StageTally:
    """How far staging is, for several threads; `clock` gives seconds, from any start."""

    def __init__(self, task: StageTask, clock: Callable[[], float] = time.monotonic) -> None:
        self.files = 0
        self.bytes = 0
        self.failures: dict[str, str] = {}
        self._task = task
        self._clock = clock
        self._at = clock()
        self._bytes_then = 0
        self._lock = threading.Lock()

    def add(self, size_bytes: int) -> None:
        """Count one file in place, and those of its bytes that were not counted yet."""
        with self._lock:
            self.files += 1
            self.bytes += size_bytes

    def add_bytes(self, size_bytes: int) -> None:
        """Count bytes of a file that is not whole yet."""
        with self._lock:
            self.bytes += size_bytes

    @property
    def gave_up(self) -> bool:
        """Whether so much failed that the rest is not worth copying."""
        return len(self.failures) >= MISSING_MAX

    def progress(self) -> dict[str, Any]:
        """Return the body of a Dataset Progress; its rate is since the last one."""
        now = self._clock()
        rate = int((self.bytes - self._bytes_then) / max(now - self._at, 0.001))
        self._at, self._bytes_then = now, self.bytes
        return {
            "files": self.files,
            "bytes": self.bytes,
            "total_files": self._task.files,
            "total_bytes": self._task.bytes,
            "rate_bytes_per_s": rate,
        }

    def failure(self) -> Outcome:
        """Return the outcome that names what could not be staged, the first with its reason."""
        path, why = next(iter(self.failures.items()))
        others = len(self.failures) - 1
        reason = f"{path}: {why}" + (f"; and {others} more files" if others else "")
        missing = [short(one, PATH_CHARACTERS, PATH_JSON_BYTES) for one in list(self.failures)[:MISSING_MAX]]
        return Outcome("Dataset Failed", {"reason": short(reason), "missing": missing})
