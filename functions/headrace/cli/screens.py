"""What a run looks like while it lives: redrawn on a terminal, line by line in a pipe, JSON lines for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from rich.console import Console, Group
from rich.live import Live

from headrace.domain.plan import Plan
from headrace.report.cells import cell
from headrace.report.change_lines import json_of, line_of
from headrace.report.console import print_page
from headrace.report.end_page import Ended, end_page
from headrace.report.plain_text import plain
from headrace.report.plan_page import plan_page
from headrace.report.run_page import run_page
from headrace.report.view import Change, Snapshot


class Screen(Protocol):
    """Where a run is shown."""

    def plan(self, plan: Plan) -> None:
        """Show the plan, before anything is started."""
        ...

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:
        """Show how the run stands, and what has changed since the last time."""
        ...

    def say(self, text: str) -> None:
        """Tell something that is not of the run itself."""
        ...

    def hide(self) -> None:
        """Show no more progress, only the end."""
        ...

    def end(self, ended: Ended) -> None:
        """Show the receipt."""
        ...


class LiveScreen:
    """A page that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plan: Plan | None = None
        self._live: Live | None = None
        self._is_hidden = False

    def plan(self, plan: Plan) -> None:
        """Print the plan."""
        self._plan = plan
        self._console.print(plan_page(plan))

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:  # noqa: ARG002  # all is on the page
        """Redraw the page."""
        if self._is_hidden:
            return
        if self._live is None:
            self._console.print()
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            self._live.start()
        self._live.update(run_page(snapshot, self._plan), refresh=True)

    def say(self, text: str) -> None:
        """Print above the page."""
        self._console.print(cell(text, "yellow"))

    def hide(self) -> None:
        """Leave the page as it is."""
        self._is_hidden = True
        if self._live is not None:
            self._live.stop()
            self._live = None

    def end(self, ended: Ended) -> None:
        """Leave the page as it is and print the receipt below."""
        self.hide()
        self._console.print()
        self._console.print(end_page(ended), crop=False)


class LineScreen:
    """One plain line per change."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_hidden = False

    def plan(self, plan: Plan) -> None:
        """Print the plan."""
        print_page(self._stream, Group(plan_page(plan), ""))

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:  # noqa: ARG002  # lines tell changes only
        """Print a line for each change."""
        for change in changes if not self._is_hidden else ():
            self._line(line_of(change))

    def say(self, text: str) -> None:
        """Print a line."""
        self._line(plain(text))

    def hide(self) -> None:
        """Print no more changes."""
        self._is_hidden = True

    def end(self, ended: Ended) -> None:
        """Print the receipt."""
        print_page(self._stream, Group("", end_page(ended)))

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class JsonScreen:
    """One JSON object per change, the plan first and the receipt last; words go to `aside`."""

    def __init__(self, stream: IO[str], aside: IO[str]) -> None:
        self._stream = stream
        self._aside = LineScreen(aside)
        self._is_hidden = False

    def plan(self, plan: Plan) -> None:
        """Write the plan."""
        self._write(json.dumps({"kind": "plan", "plan": plan.model_dump(mode="json")}, allow_nan=False))

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:
        """Write each change."""
        for change in changes if not self._is_hidden else ():
            self._write(json_of(change, snapshot.row.run_id))

    def say(self, text: str) -> None:
        """Print a line aside."""
        self._aside.say(text)

    def hide(self) -> None:
        """Write no more changes."""
        self._is_hidden = True

    def end(self, ended: Ended) -> None:
        """Write the receipt."""
        facts = {"kind": "receipt", "run_id": ended.receipt.run_id, "results_folder": ended.results_folder}
        self._write(json.dumps({**facts, "receipt": ended.receipt.model_dump(mode="json")}, allow_nan=False))

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class UnbreakableScreen:
    """Passes everything on until the reader is gone (a closed pipe, a lost terminal), and then shows nothing more."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.is_broken = False

    def plan(self, plan: Plan) -> None:
        """Show the plan."""
        self._try(lambda: self._screen.plan(plan))

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:
        """Show the run."""
        self._try(lambda: self._screen.show(snapshot, changes))

    def say(self, text: str) -> None:
        """Tell something."""
        self._try(lambda: self._screen.say(text))

    def hide(self) -> None:
        """Show no more progress."""
        self._try(self._screen.hide)

    def end(self, ended: Ended) -> None:
        """Show the receipt."""
        self._try(lambda: self._screen.end(ended))

    def _try(self, action: Callable[[], None]) -> None:
        if self.is_broken:
            return
        try:
            action()
        except (OSError, ValueError):
            self.is_broken = True
