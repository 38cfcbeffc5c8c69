"""`headrace ls`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, for_every_command
from headrace.cli.stack import also_on_aws
from headrace.client.on_aws import AwsClient
from headrace.report.documents import run_document
from headrace.report.runs_page import runs_page


@click.command(epilog="Example: headrace ls")
@for_every_command
@also_on_aws
def ls(place: Place, aws: AwsClient | None) -> int:
    """List all runs, newest first; of a stack, the newest fifty."""
    runs = aws.runs() if aws else [place.table.snapshot(row.run_id) for row in place.table.rows()]
    place.answer({"runs": [run_document(run) for run in runs]}, runs_page(runs))
    return 0
