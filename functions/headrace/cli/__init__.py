"""The command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; end with its exit code."""
    try:
        from headrace.cli.app import run_app  # noqa: PLC0415  # Ctrl-C during the imports is a plain end, too

        code = run_app()
    except KeyboardInterrupt:
        code = 130
    _leave(code)


def _leave(code: int) -> None:
    """Exit without the complaint of the interpreter when the reader of the output is gone."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
