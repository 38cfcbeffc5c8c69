"""Finds every process of a job, however it forked, and ends them all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PROC = Path("/proc")
PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h: orphans below this process become its children instead of init's."""

MARK_VARIABLE = "HEADRACE_JOB_MARK"
PAUSE_SECONDS = 0.02


def become_subreaper() -> None:
    """Adopt orphaned descendants from now on. Raises OSError when the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def _process_ids() -> list[int]:
    return [int(entry.name) for entry in os.scandir(PROC) if entry.name.isdigit()]


def parent_of(pid: int) -> tuple[int, str] | None:
    """Return the parent's id and the state letter of a process, or None when it is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return int(parent), state


def descendants_of(root: int) -> set[int]:
    """Return the ids of all processes below `root`, zombies included."""
    parents = {pid: found[0] for pid in _process_ids() if (found := parent_of(pid))}
    below: set[int] = set()
    grown = {root}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown} - below
        below |= grown
    return below


def marked_by(mark: str) -> set[int]:
    """Return the ids of all processes that were started with the mark in their environment."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    return {pid for pid in _process_ids() if wanted in _environment(pid)}


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class ProcessTree:
    """All processes of one job: those that carry its mark, and those that this process had to adopt since."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._others = descendants_of(os.getpid())

    def process_ids(self) -> set[int]:
        """Return the ids of all living or zombie processes of the job."""
        return (marked_by(self.mark) | (descendants_of(os.getpid()) - self._others)) - {os.getpid()}

    def reap(self, keep: int | None = None) -> None:
        """Collect dead orphans, but not `keep`, whose end somebody else waits for."""
        while True:
            try:
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if dead is None or dead.si_pid == keep or dead.si_pid in self._others:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)

    def end_all(self, seconds: float) -> set[int]:
        """Kill and reap every process of the job, for at most that long. Return what still lives, normally nothing."""
        end = time.monotonic() + seconds
        while alive := {pid for pid in self.process_ids() if _is_alive(pid)}:
            if time.monotonic() > end:
                return alive
            for pid in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(PAUSE_SECONDS)
            self.reap()
        self.reap()
        return set()


def _is_alive(pid: int) -> bool:
    found = parent_of(pid)
    return found is not None and found[1] not in "ZX"
