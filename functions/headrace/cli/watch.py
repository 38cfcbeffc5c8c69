"""`headrace watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from headrace.cli.options import EXIT_FAILED, EXIT_STOPPED, Place, for_every_command, recover_first
from headrace.cli.screens import JsonScreen, LineScreen, Screen
from headrace.cli.stack import also_on_aws
from headrace.client.on_aws import AwsClient
from headrace.client.run_table import RunTable
from headrace.report.end_page import Ended
from headrace.report.view import Seen, Snapshot, changes_since

LOOK_SECONDS = 0.25


@click.command(epilog="Example: headrace watch digits-3f --aws")
@click.argument("run", required=False)
@for_every_command
@also_on_aws
def watch(place: Place, aws: AwsClient | None, run: str | None) -> int:
    """Follow a run to its end, whoever started it.

    RUN is a run's id or the beginning of it (default: the newest run). Ctrl-C ends the looking, not the run.
    """
    screen: Screen = JsonScreen(sys.stdout, sys.stderr) if place.as_json else LineScreen(sys.stdout)
    if aws is None:
        run_id = place.table.find(run)
        return follow(looks_here(place, run_id), place.table, screen)
    found = aws.run(run)
    return follow(found.changes(), aws.table, screen)


def follow(snapshots: Iterator[Snapshot], table: RunTable, screen: Screen) -> int:
    """Show each change until the run is over, then its receipt; return the exit code that its status means."""
    seen, last = Seen(), None
    for snapshot in snapshots:
        seen, changes = changes_since(seen, snapshot)
        screen.show(snapshot, changes)
        last = snapshot
    receipt = table.receipt(last.row.run_id) if last else None
    if last is None or receipt is None:
        return EXIT_FAILED
    screen.end(Ended(receipt, last.nodes))
    return {"SUCCEEDED": 0, "STOPPED": EXIT_STOPPED}.get(receipt.status, EXIT_FAILED)


def looks_here(place: Place, run_id: str) -> Iterator[Snapshot]:
    """Yield the run as it stands until it is over; when the process that drives it dies meanwhile, end it here."""
    while True:
        snapshot = place.table.snapshot(run_id)
        yield snapshot
        if snapshot.row.ended_at is not None:
            return
        recover_first(place)
        time.sleep(LOOK_SECONDS)
