"""A pipe gets plain text; a terminal gets colours unless NO_COLOR says otherwise."""

from __future__ import annotations

import io

import pytest
from rich.console import Group
from rich.text import Text

from headrace.report.cells import cell, status_cell
from headrace.report.console import PIPED_COLUMNS, console_for, text_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_pipe_gets_no_control_codes_even_when_colour_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    pipe = io.StringIO()
    console_for(pipe).print(status_cell("FAILED"))
    assert pipe.getvalue() == "FAILED\n"


def test_a_pipe_has_a_width_of_its_own() -> None:
    assert console_for(io.StringIO()).width == PIPED_COLUMNS


def test_a_terminal_gets_colours() -> None:
    terminal = Terminal()
    console_for(terminal, 80).print(status_cell("FAILED"))
    assert terminal.getvalue() == "\x1b[31mFAILED\x1b[0m\n"


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    console_for(terminal, 80).print(status_cell("FAILED"))
    assert "31m" not in terminal.getvalue()


def test_markup_and_emoji_codes_are_only_text() -> None:
    pipe = io.StringIO()
    console_for(pipe).print(cell("[bold]:smile:[/bold]"))
    assert pipe.getvalue() == "[bold]:smile:[/bold]\n"


def test_a_line_that_must_not_wrap_is_printed_whole() -> None:
    path = Text("/very/long/" * 30, no_wrap=True, overflow="ignore")
    assert text_of(Group(path), 80) == "/very/long/" * 30 + "\n"
