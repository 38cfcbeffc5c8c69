"""`headrace stop`."""

from __future__ import annotations

import sys
import time

import click

from headrace.cli.options import Place, aside, for_every_command, recover_first
from headrace.client.handle import this_person
from headrace.report.change_lines import line_of
from headrace.report.documents import status_document
from headrace.report.view import Seen, Snapshot, changes_since

LOOK_SECONDS = 0.25


@click.command(epilog="Example: headrace stop digits-3f")
@click.argument("run")
@for_every_command
def stop(place: Place, run: str) -> int:
    """Stop a run, and wait until all is released.

    RUN is a run's id or the beginning of it. A run that is over stays as it is.
    """
    run_id = place.table.find(run)
    before = place.table.snapshot(run_id)
    if before.row.ended_at is not None:
        aside(f"{run_id} is over since {before.row.ended_at}: {before.row.status}")
    else:
        asked = {"stop_requested_by": f"{this_person()} (headrace stop)"}
        place.table.runs.update(run_id, "run", "run", asked, {"stop_requested_by": None, "ended_at": None})
        aside(f"stopping {run_id}: training is asked to stop, machines are released ...")
        before = _wait(place, run_id, before)
    if place.as_json:
        place.answer(status_document(before, None), "")
    return 0


def _wait(place: Place, run_id: str, before: Snapshot) -> Snapshot:
    """Show the end of the run; when the process that drives it dies meanwhile, end it here."""
    seen = Seen(before)
    while True:
        snapshot = place.table.snapshot(run_id)
        seen, changes = changes_since(seen, snapshot)
        for change in changes:
            click.echo(line_of(change), file=sys.stderr if place.as_json else sys.stdout)
        if snapshot.row.ended_at is not None:
            return snapshot
        recover_first(place)
        time.sleep(LOOK_SECONDS)
