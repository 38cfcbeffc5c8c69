"""The same run on a terminal, in a pipe and for a program, and with a reader that goes away."""

from __future__ import annotations

import io
import json

import pytest

from headrace.cli.screens import JsonScreen, LineScreen, LiveScreen, Screen, UnbreakableScreen
from headrace.report.console import console_for
from headrace.report.end_page import Ended
from headrace.report.view import Seen, changes_since
from tests.report import samples

RUNNING = samples.snapshot(samples.row(("training", 2)), samples.node("compute", 0), second=4)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    """A stream whose reader went away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, f"nobody reads {len(text)} characters")


def play(screen: Screen) -> None:
    screen.plan(samples.plan())
    screen.show(RUNNING, changes_since(Seen(), RUNNING)[1])
    screen.say("stopping \x1b[31m ...")
    screen.hide()
    screen.show(RUNNING, changes_since(Seen(), RUNNING)[1])
    screen.end(Ended(samples.receipt()))


@pytest.fixture(autouse=True)
def _terminal_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_pipe_gets_plain_lines_and_after_hiding_only_the_end() -> None:
    pipe = io.StringIO()
    play(LineScreen(pipe))
    text = pipe.getvalue()
    assert not set(text) & {"\x1b", "\r"}
    assert text.count("training: the command runs") == 1
    assert "\nstopping \\x1b[31m ...\n" in text
    assert f"\nreceipt of {samples.RUN_ID}\n" in text


def test_a_program_gets_nothing_but_json_and_words_go_aside() -> None:
    out, aside = io.StringIO(), io.StringIO()
    play(JsonScreen(out, aside))
    kinds = [json.loads(line)["kind"] for line in out.getvalue().splitlines()]
    assert kinds == ["plan", "run", "phase", "node", "receipt"]
    assert aside.getvalue() == "stopping \\x1b[31m ...\n"


def test_a_terminal_is_redrawn_in_place_and_keeps_the_receipt() -> None:
    terminal = Terminal()
    screen = LiveScreen(console_for(terminal, 80))
    for _ in range(3):
        screen.show(RUNNING, ())
    assert "\x1b[1A" in terminal.getvalue()
    drawn = len(terminal.getvalue())
    play(screen)
    assert "receipt of" in terminal.getvalue()[drawn:]
    assert terminal.getvalue().endswith("\n")
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") > 0


def test_a_hidden_page_is_drawn_no_more() -> None:
    terminal = Terminal()
    screen = LiveScreen(console_for(terminal, 80))
    screen.show(RUNNING, ())
    screen.hide()
    drawn = terminal.getvalue()
    screen.show(RUNNING, ())
    assert terminal.getvalue() == drawn


@pytest.mark.parametrize("kind", ["lines", "json"])
def test_a_reader_that_goes_away_breaks_nothing(kind: str) -> None:
    inner: Screen = LineScreen(Closed()) if kind == "lines" else JsonScreen(Closed(), Closed())
    screen = UnbreakableScreen(inner)
    play(screen)
    assert screen.is_broken
