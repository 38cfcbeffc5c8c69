"""Starts the job's command as its own group, passes signals on, and tells how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from headrace_agent.job_log import JobLog
from headrace_agent.job_user import JobUser, as_user

READ_BYTES = 64 * 1024
TICK_SECONDS = 0.2


class CannotStart(Exception):
    """The command is no program that can run here; the text says why."""


@dataclass(frozen=True)
class Ending:
    """How the command ended: by a code, or by a signal's name."""

    exit_code: int | None
    signal: str | None

    @property
    def is_good(self) -> bool:
        """Whether it ended by itself with 0."""
        return self.exit_code == 0

    def in_words(self) -> str:
        """Return the ending for a person."""
        if self.signal:
            return f"the command was ended by {self.signal}"
        return f"the command ended with exit code {self.exit_code}"


def ending_of(returncode: int) -> Ending:
    """Return the ending for a wait status as subprocess gives it: negative for a signal."""
    if returncode >= 0:
        return Ending(returncode, None)
    try:
        return Ending(None, signal.Signals(-returncode).name)
    except ValueError:
        return Ending(None, f"signal {-returncode}")


class Trainer:
    """One run of the command, as that user or the agent's own. Its output goes to the log. Raises CannotStart."""

    def __init__(
        self,
        argv: Sequence[str],
        work: Path,
        environment: Mapping[str, str],
        log: JobLog,
        user: JobUser | None = None,
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(argv),
                cwd=work,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
                **as_user(user),
            )
        except (OSError, ValueError) as error:
            raise CannotStart(_why_not(argv[0], work, environment, error)) from error
        make_killable(self._process.pid)
        self._ended = os.pidfd_open(self._process.pid)
        self._pump = threading.Thread(
            target=_copy_output, args=(cast("IO[bytes]", self._process.stdout), log), daemon=True
        )
        self._pump.start()

    @property
    def pid(self) -> int:
        """Process id, which is also that of its group and session."""
        return self._process.pid

    def wait(self, seconds: float) -> Ending | None:
        """Return how it ended, or None when it still runs after that long."""
        select.select([self._ended], [], [], seconds)
        returncode = self._process.poll()
        return None if returncode is None else ending_of(returncode)

    def stop(self, grace_seconds: float, meanwhile: Callable[[], None]) -> Ending:
        """Ask the group to end, and after the grace kill it. Return how the command ended."""
        self._signal_group(signal.SIGTERM)
        end = time.monotonic() + grace_seconds
        while time.monotonic() < end:
            if ending := self.wait(min(TICK_SECONDS, max(0.01, end - time.monotonic()))):
                return ending
            meanwhile()
        self._signal_group(signal.SIGKILL)
        return ending_of(self._process.wait())

    def finish_output(self, seconds: float) -> None:
        """Wait until all output is in the log; every process that holds the pipe must be gone by now."""
        self._pump.join(seconds)
        os.close(self._ended)

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def make_killable(pid: int, proc: Path = Path("/proc")) -> None:
    """Take from the job what protects the agent when memory runs out: it is the job that shall be ended then."""
    path = proc / str(pid) / "oom_score_adj"
    with contextlib.suppress(OSError):
        if int(path.read_text()) < 0:
            path.write_text("0")


def _copy_output(pipe: IO[bytes], log: JobLog) -> None:
    with pipe:
        while data := pipe.read(READ_BYTES):
            log.write(data)


def _why_not(program: str, work: Path, environment: Mapping[str, str], error: Exception) -> str:
    if isinstance(error, ValueError):
        return f"the command cannot be started: {error}"
    has_folder = "/" in program
    path = work / program if has_folder else shutil.which(program, path=environment.get("PATH"))
    if path is None:
        return f"the program '{program}' was not found on PATH; add it to the requirements or the image"
    if not Path(path).exists():
        return f"the program '{program}' is not in the job's code; check the name and what was uploaded"
    if isinstance(error, FileNotFoundError):
        return f"the program '{program}' is there, but not the interpreter that its first line (#!) names"
    if isinstance(error, PermissionError):
        return f"the program '{program}' may not be executed; make it executable, or start it with its interpreter"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"the program '{program}' cannot be started: {reason}"
