"""`headrace stop`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from headrace.cli.options import Place, aside, for_every_command
from headrace.cli.stack import also_on_aws
from headrace.cli.watch import looks_here
from headrace.client.handle import this_person
from headrace.client.on_aws import AwsClient
from headrace.report.change_lines import line_of
from headrace.report.documents import status_document
from headrace.report.view import Seen, Snapshot, changes_since


@click.command(epilog="Example: headrace stop digits-3f")
@click.argument("run")
@for_every_command
@also_on_aws
def stop(place: Place, aws: AwsClient | None, run: str) -> int:
    """Stop a run, and wait until all is released.

    RUN is a run's id or the beginning of it. A run that is over stays as it is.
    """
    table = aws.table if aws else place.table
    run_id = table.find(run)
    before = table.snapshot(run_id)
    if before.row.ended_at is not None:
        aside(f"{run_id} is over since {before.row.ended_at}: {before.row.status}")
    else:
        by = f"{this_person()} (headrace stop)"
        if aws:
            looks = _abort(aws, run_id, by)
        else:
            asked = {"stop_requested_by": by}
            table.runs.update(run_id, "run", "run", asked, {"stop_requested_by": None, "ended_at": None})
            looks = looks_here(place, run_id)
        aside(f"stopping {run_id}: training is asked to stop, machines are released ...")
        before = _show(place, looks, before)
    if place.as_json:
        place.answer(status_document(before, None), "")
    return 0


def _abort(aws: AwsClient, run_id: str, by: str) -> Iterator[Snapshot]:
    run = aws.run(run_id)
    run.stop(by)
    return run.changes()


def _show(place: Place, looks: Iterator[Snapshot], before: Snapshot) -> Snapshot:
    """Tell each change until the run is over; return the run as it then stands."""
    seen, last = Seen(before), before
    for last in looks:
        seen, changes = changes_since(seen, last)
        for change in changes:
            click.echo(line_of(change), file=sys.stderr if place.as_json else sys.stdout)
    return last
