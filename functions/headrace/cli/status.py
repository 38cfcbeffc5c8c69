"""`headrace status`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, for_every_command
from headrace.report.documents import status_document
from headrace.report.run_page import run_page


@click.command(epilog="Example: headrace status digits-3f")
@click.argument("run", required=False)
@for_every_command
def status(place: Place, run: str | None) -> int:
    """Show how a run stands.

    RUN is a run's id or the beginning of it (default: the newest run).
    """
    run_id = place.table.find(run)
    snapshot, plan = place.table.snapshot(run_id), place.table.plan(run_id)
    place.answer(status_document(snapshot, plan), run_page(snapshot, plan))
    return 0
