"""`headrace plan`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.options import Place, aside, for_every_command
from headrace.cli.reading import read_and_prepare
from headrace.client.dry_run import DryRun
from headrace.client.opening import open_remote_objects
from headrace.domain.what_if import FIELDS, asked_of
from headrace.local.rules import read_rules
from headrace.report.plan_answer_page import plan_answer_page

FILE = click.Path(path_type=Path)
WHAT_IF_HELP = f"Plan again with other values, each with each other; may be repeated. Fields: {', '.join(FIELDS)}."


@click.command(epilog="Example: headrace plan job.yaml --what-if count=2,4,8 --what-if fabric=roce,tcp")
@click.argument("job", metavar="JOB.yaml", type=click.Path())
@click.option("--results", metavar="DIR", help="Folder or s3:// address for the results, instead of the job's.")
@click.option("--why", "types", metavar="TYPE", multiple=True, help="Say why this machine type is not in the plan.")
@click.option("--what-if", "changes", metavar="FIELD=VALUE,...", multiple=True, help=WHAT_IF_HELP)
@click.option("--prices", metavar="FILE", type=FILE, help="Price overrides (default: prices.yaml in the home folder).")
@click.option("--policy", metavar="FILE", type=FILE, help="Policy (default: policy.yaml in the home folder).")
@for_every_command
def plan(
    place: Place,
    job: str,
    results: str | None,
    types: tuple[str, ...],
    changes: tuple[str, ...],
    prices: Path | None,
    policy: Path | None,
) -> int:
    """Show what a run would launch and cost.

    The data set is listed, on this machine or in S3; nothing is started. The schema of the JSON answer is
    `schemas/plan-answer.json` of the package.
    """
    asked = asked_of(changes)
    prepared = read_and_prepare(place, job, results, is_remote_allowed=True)
    for note in prepared.notes:
        aside(note)
    rules = read_rules(place.home, prices, policy)
    dry = DryRun(prepared, place.home, rules, open_remote_objects(prepared, place.home))
    answer = dry.answer(types, asked)
    for note in answer.notes:
        aside(note)
    place.answer(answer.model_dump(mode="json"), plan_answer_page(answer))
    return 0
