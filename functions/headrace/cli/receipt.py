"""`headrace receipt`."""

from __future__ import annotations

import click

from headrace.cli.options import EXIT_FAILED, Place, aside, for_every_command
from headrace.client.places import folder_of
from headrace.report.end_page import Ended, end_page


@click.command(epilog="Example: headrace receipt")
@click.argument("run", required=False)
@for_every_command
def receipt(place: Place, run: str | None) -> int:
    """Show what a run started, released and cost.

    RUN is a run's id or the beginning of it (default: the newest run).
    """
    run_id = place.table.find(run)
    found = place.table.receipt(run_id)
    if found is None:
        aside(f"{run_id} has no receipt yet: it is {place.table.snapshot(run_id).row.status}; `headrace status` tells")
        return EXIT_FAILED
    folder = folder_of(place.home, found.results) if found.results else None
    ended = Ended(found, place.table.snapshot(run_id).nodes, str(folder) if folder else None)
    place.answer({"receipt": found.model_dump(mode="json"), "results_folder": ended.results_folder}, end_page(ended))
    return 0
