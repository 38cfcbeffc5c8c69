"""`headrace ls`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, for_every_command
from headrace.report.documents import run_document
from headrace.report.runs_page import runs_page


@click.command(epilog="Example: headrace ls")
@for_every_command
def ls(place: Place) -> int:
    """List all runs, newest first."""
    runs = [place.table.snapshot(row.run_id) for row in place.table.rows()]
    place.answer({"runs": [run_document(run) for run in runs]}, runs_page(runs))
    return 0
