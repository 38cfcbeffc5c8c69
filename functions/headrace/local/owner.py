"""Which process drives a run, and whether that very process still lives."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
_STATE, _START_TICKS = 0, 19
"""Places of fields 3 and 22 of /proc/<pid>/stat after the name in brackets (man 5 proc)."""


def owner_of(pid: int) -> str | None:
    """Return `pid:start-time-ticks` of a living process, or None; a zombie does not live."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold blanks and brackets, so fields are counted from the last bracket.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[_STATE] in "ZX" else f"{pid}:{fields[_START_TICKS]}"


def this_process() -> str:
    """Return `pid:start-time-ticks` of this process."""
    return owner_of(os.getpid()) or f"{os.getpid()}:0"


def is_alive(owner: str) -> bool:
    """Tell whether the process lives; another one that was given its number later is not it."""
    pid, _, _ = owner.partition(":")
    return pid.isdecimal() and owner_of(int(pid)) == owner
