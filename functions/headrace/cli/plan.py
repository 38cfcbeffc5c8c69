"""`headrace plan`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, aside, for_every_command
from headrace.cli.reading import read_and_prepare
from headrace.client.dry_run import plan_without_running
from headrace.client.opening import open_remote_objects, read_prices
from headrace.report.plan_page import plan_page


@click.command(epilog="Example: headrace plan job.yaml")
@click.argument("job", metavar="JOB.yaml", type=click.Path())
@click.option("--results", metavar="DIR", help="Folder or s3:// address for the results, instead of the job's.")
@for_every_command
def plan(place: Place, job: str, results: str | None) -> int:
    """Show what a run would launch and cost.

    The data set is listed, on this machine or in S3; nothing is started.
    """
    prepared = read_and_prepare(place, job, results, is_remote_allowed=True)
    for note in prepared.notes:
        aside(note)
    made = plan_without_running(prepared, place.home, read_prices(), open_remote_objects(prepared, place.home))
    place.answer({"plan": made.model_dump(mode="json")}, plan_page(made))
    return 0
