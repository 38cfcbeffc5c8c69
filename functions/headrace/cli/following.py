"""Follows one run to its end, whatever signals come meanwhile."""

from __future__ import annotations

import threading

from headrace.cli.interrupts import Interrupts
from headrace.cli.screens import Screen
from headrace.client.handle import RunHandle
from headrace.report.end_page import Ended
from headrace.report.view import Seen, changes_since

LOOK_SECONDS = 0.25


def follow(handle: RunHandle, screen: Screen, interrupts: Interrupts) -> Ended | None:
    """Show the run until it is over and return how it ended, or None when it ended before it was recorded.

    The first signal asks for the run's end, the next one hides the progress, and none breaks off anything.
    """
    seen = Seen()
    stopper = _Stopper(handle)
    is_over = False
    while not is_over:
        is_over = handle.is_over()
        if interrupts.count:
            stopper.react(interrupts, screen)
        if handle.known_id is not None:
            snapshot = handle.snapshot()
            seen, changes = changes_since(seen, snapshot)
            screen.show(snapshot, changes)
        if not is_over:
            interrupts.pause(LOOK_SECONDS)
    return _ended(handle)


def _ended(handle: RunHandle) -> Ended | None:
    receipt = handle.receipt() if handle.known_id is not None else None
    if receipt is None:
        return None
    folder = handle.results_folder
    return Ended(receipt, handle.snapshot().nodes, str(folder) if folder else None)


class _Stopper:
    """Asks for the run's end once, beside the view, as soon as the run is known."""

    def __init__(self, handle: RunHandle) -> None:
        self._handle = handle
        self._thread: threading.Thread | None = None
        self._is_told = False
        self._is_hidden = False
        self._faults: list[str] = []

    def react(self, interrupts: Interrupts, screen: Screen) -> None:
        run_id = self._handle.known_id
        if not self._is_told:
            self._is_told = True
            screen.say(
                f"stopping {run_id or 'the run'}: training is asked to stop, machines are released ... "
                "(press Ctrl-C again to hide progress; the release goes on)"
            )
        if interrupts.count > 1 and not self._is_hidden:
            self._is_hidden = True
            screen.hide()
            screen.say("progress is hidden; every machine is still being released")
        if run_id is not None and (self._thread is None or (self._faults and not self._thread.is_alive())):
            self._tell_fault(screen)
            self._thread = threading.Thread(target=self._stop, args=(interrupts.cause,), name="stop", daemon=True)
            self._thread.start()

    def _stop(self, by: str) -> None:
        try:
            self._handle.stop(by)
        except Exception as error:  # whatever it is, it is told and the stop is asked for again
            self._faults.append(f"{type(error).__name__}: {error}")

    def _tell_fault(self, screen: Screen) -> None:
        while self._faults:
            screen.say(f"the stop failed and is asked for again: {self._faults.pop()}")
