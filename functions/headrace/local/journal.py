"""The log of each run on this machine: what its handlers and events ran into, one file per run."""

from __future__ import annotations

import re
import threading
import traceback
from pathlib import Path
from typing import Any

from headrace.domain.instants import to_text
from headrace.ports import Clock

_RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Journal:
    """Appends to `<folder>/<run id>.log`, or to `site.log` what belongs to no run; safe for several threads."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()

    def write(self, run_id: object, text: str) -> None:
        """Append the text with the time; what is no run id (an event may claim anything) goes to `site.log`."""
        name = run_id if isinstance(run_id, str) and _RUN_ID.fullmatch(run_id) else "site"
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / f"{name}.log").open("a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"{to_text(self._clock.now())} {text.rstrip()}\n")

    def failure(self, run_id: object, what: str, error: BaseException) -> None:
        """Append what failed and where."""
        where = "".join(traceback.format_exception(error))
        self.write(run_id, f"{what}: {type(error).__name__}: {error}\n{where}")


def run_id_of(request: Any) -> object:
    """Return the run that a state's input or an event says it is about, or None."""
    if not isinstance(request, dict):
        return None
    detail = request.get("detail")
    return request.get("run_id") or (detail.get("run_id") if isinstance(detail, dict) else None)
