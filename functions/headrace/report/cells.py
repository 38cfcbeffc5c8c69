"""The few shapes that every page is made of; all text passes through here, so nothing hostile reaches a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headrace.report.plain_text import plain

STATUS_STYLES = {"RUNNING": "cyan", "SUCCEEDED": "green", "FAILED": "red", "STOPPED": "yellow"}


def cell(text: str, style: str = "") -> Text:
    """Return the text as it is: no markup, no control characters, folded where it is too long for its place."""
    return Text(plain(text), style=style, overflow="fold")


def status_cell(status: str) -> Text:
    """Return a status in its colour."""
    return cell(status, STATUS_STYLES.get(status, ""))


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table without lines; the columns named in `right` are aligned to the right."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    numbers = set(right)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def facts(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    """Return names and values in two columns."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value if isinstance(value, Text) else cell(value))
    return grid


def section(title: str, body: RenderableType) -> RenderableType:
    """Return a titled, indented part of a page, with a blank line before it."""
    return Group("", cell(title, "bold"), Padding(body, (0, 0, 0, 2)))


def bullets(texts: Iterable[str]) -> Table:
    """Return texts as a list, each with its continuation lines indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    for text in texts:
        grid.add_row("-", cell(text))
    return grid
