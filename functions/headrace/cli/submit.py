"""`headrace submit`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, aside, for_every_command
from headrace.cli.stack import names_a_stack
from headrace.client.on_aws import AwsClient
from headrace.report.cells import cell


@click.command(epilog="Example: headrace submit job.yaml --aws")
@click.argument("job", metavar="JOB.yaml", type=click.Path())
@click.option("--results", metavar="ADDRESS", help="An s3:// address for the results, instead of the job's.")
@for_every_command
@names_a_stack
def submit(place: Place, aws: AwsClient, job: str, results: str | None) -> int:
    """Start a job on the deployed stack, and return.

    The code is uploaded; data and results are in S3 already. `headrace watch RUN --aws` follows the run, which needs
    nothing of this machine any more.
    """
    prepared = aws.prepare(job, results)
    for note in prepared.notes:
        aside(note)
    run = aws.submit(prepared)
    said = f"{run.id} is started; follow it with: headrace watch {run.id} --aws"
    place.answer({"run_id": run.id, "execution_arn": run.execution_arn}, cell(said))
    return 0
