"""Consoles that show text exactly as given: no markup, no guessed colours, no control codes where nobody looks."""

from __future__ import annotations

import os
from typing import IO

from rich.console import Console, RenderableType

PIPED_COLUMNS = 100


def console_for(stream: IO[str], columns: int | None = None) -> Console:
    """Return a console for the stream: colours and cursor movement on a terminal only, and never with NO_COLOR."""
    is_terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=is_terminal,
        no_color=True if os.environ.get("NO_COLOR") else None,
        width=columns or (None if is_terminal else PIPED_COLUMNS),
        markup=False,
        highlight=False,
        emoji=False,
    )


def print_page(stream: IO[str], page: RenderableType) -> None:
    """Print a page: as a terminal shows it, or as plain text without trailing blanks."""
    if stream.isatty():
        console_for(stream).print(page, crop=False)
    else:
        stream.write(text_of(page, PIPED_COLUMNS))
    stream.flush()


def text_of(renderable: RenderableType, columns: int) -> str:
    """Return what the renderable looks like on a plain page of that width, without trailing blanks."""
    # Only the encoding of this stream counts, and bars of ASCII characters survive any pipe; nothing is written to it.
    with open(os.devnull, "w", encoding="ascii") as nowhere:  # noqa: PTH123
        console = Console(file=nowhere, width=columns, no_color=True, markup=False, highlight=False, emoji=False)
        with console.capture() as captured:
            console.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
