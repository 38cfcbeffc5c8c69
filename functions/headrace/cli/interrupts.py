"""Turns signals into a count, so that no clean-up is ever broken off by one."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Self

CAUSES = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "the signal SIGTERM",
    signal.SIGHUP: "the signal SIGHUP, as when a terminal is closed",
}
NAP_SECONDS = 0.05


class Interrupts:
    """Ctrl-C, SIGTERM and SIGHUP while a run lives.

    Until `hold` is called, a signal raises KeyboardInterrupt, which is right while nothing has been started. From then
    on signals are only counted, and `cause` says what the first one was. A signal that was ignored when the process
    began (nohup, a background job) stays so.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cause = ""
        self._is_held = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in CAUSES:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if callable(before) or isinstance(before, int) else signal.SIG_DFL)

    def hold(self) -> None:
        """From now on only count."""
        self._is_held = True

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the next signal."""
        seen, end = self.count, time.monotonic() + seconds
        while self.count == seen and time.monotonic() < end:
            time.sleep(NAP_SECONDS)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.cause = self.cause or CAUSES[signal.Signals(number)]
        if not self._is_held:
            raise KeyboardInterrupt
