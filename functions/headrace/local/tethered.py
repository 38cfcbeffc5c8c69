"""A child process that dies with this one, keeps a log, and says in that log when it is ready."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

TETHER = Path(__file__).with_name("tether.py")


class ChildFailed(RuntimeError):
    """A child process ended, or stayed silent, before it was ready."""


class TetheredProcess:
    """One running command; `ready` is the pattern in its error output that says it serves.

    The kernel ends a tethered child with the *thread* that started it, so one thread starts it, copies its output to
    the log and waits for its end.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, ready: re.Pattern[str]
    ) -> None:
        self._command = (sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command)
        self._environment = dict(environment)
        self._log = log
        self._ready = ready
        self._process: subprocess.Popen[str] | None = None
        self._heard = threading.Event()
        self._match: re.Match[str] | None = None
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._attend, name=f"attend-{log.stem}", daemon=True)

    def start(self, patience_seconds: float) -> re.Match[str]:
        """Start the child and return what matched. Raises ChildFailed, with the end of its log."""
        self._thread.start()
        self._heard.wait(patience_seconds)
        if self._match is None:
            self.stop()
            tail = self._fault or (self._log.read_text(errors="replace")[-2000:] if self._log.exists() else "")
            raise ChildFailed(f"{self._command[5]} was not ready within {patience_seconds:.0f} s. It said: {tail}")
        return self._match

    def stop(self) -> None:
        """Kill the child and wait for its end; safe to repeat."""
        if self._process is not None:
            self._process.kill()
        if self._thread.is_alive():
            self._thread.join()

    def is_running(self) -> bool:
        """Tell whether the child was started and has not ended."""
        return self._thread.is_alive()

    def _attend(self) -> None:
        try:
            with self._log.open("a") as log, self._open() as process:
                self._process = process
                self._copy(process, log.write)
        except OSError as fault:
            self._fault = fault
        finally:
            self._heard.set()

    def _open(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            bufsize=1,
            # A terminal sends Ctrl-C to its whole foreground group; the child must outlive that to serve the clean-up.
            start_new_session=True,
        )

    def _copy(self, process: subprocess.Popen[str], write: Callable[[str], int]) -> None:
        assert process.stderr is not None  # noqa: S101 - it is a pipe
        for line in process.stderr:
            write(line)
            if self._match is None and (match := self._ready.search(line)):
                self._match = match
                self._heard.set()
