"""`headrace receipt`."""

from __future__ import annotations

import click

from headrace.cli.options import EXIT_FAILED, Place, aside, for_every_command
from headrace.cli.stack import also_on_aws
from headrace.client.on_aws import AwsClient
from headrace.client.places import folder_of
from headrace.report.end_page import Ended, end_page


@click.command(epilog="Example: headrace receipt")
@click.argument("run", required=False)
@for_every_command
@also_on_aws
def receipt(place: Place, aws: AwsClient | None, run: str | None) -> int:
    """Show what a run started, released and cost.

    RUN is a run's id or the beginning of it (default: the newest run).
    """
    table = aws.table if aws else place.table
    run_id = table.find(run)
    found, snapshot = table.receipt(run_id), table.snapshot(run_id)
    if found is None:
        how = f"`headrace watch {run_id} --aws` follows it" if aws else "`headrace status` tells"
        aside(f"{run_id} has no receipt yet: it is {snapshot.row.status}; {how}")
        return EXIT_FAILED
    folder = folder_of(place.home, found.results) if found.results and not aws else None
    ended = Ended(found, snapshot.nodes, str(folder) if folder else None)
    place.answer({"receipt": found.model_dump(mode="json"), "results_folder": ended.results_folder}, end_page(ended))
    return 0
