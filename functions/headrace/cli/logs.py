"""`headrace logs`."""

from __future__ import annotations

import sys
import time

import click

from headrace.cli.options import EXIT_FAILED, Place, aside, for_every_command
from headrace.client.logs import LogTail
from headrace.report.plain_text import plain, plain_log_line

LOOK_SECONDS = 0.5


@click.command(epilog="Example: headrace logs --follow")
@click.argument("run", required=False)
@click.option("--node", metavar="ID", help="Only this machine, by its id or the beginning of it.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run is over.")
@for_every_command
def logs(place: Place, run: str | None, node: str | None, *, follow: bool) -> int:
    """Show what a run's command has written.

    RUN is a run's id or the beginning of it (default: the newest run).
    """
    if follow and place.as_json:
        raise click.UsageError("--follow and --json do not go together: --json is one document")
    run_id = place.table.find(run)
    tail = LogTail(place.home, run_id, node)
    if place.as_json:
        texts = [{"node_id": node_id, "text": text} for node_id, text in tail.new_text(is_last=True)]
        place.answer({"run_id": run_id, "logs": texts}, "")
        return 0
    shown = _show(place, run_id, tail, is_following=follow)
    if not shown:
        whose = f"machine {node!r} of {run_id}" if node else run_id
        aside(f"{whose} has no log; the command writes one from the phase `training` on")
        return EXIT_FAILED
    return 0


def _show(place: Place, run_id: str, tail: LogTail, *, is_following: bool) -> bool:
    last_node = ""
    while True:
        is_last = not is_following or place.table.snapshot(run_id).row.ended_at is not None
        for node_id, text in tail.new_text(is_last=is_last):
            if node_id != last_node:
                sys.stdout.write(f"== {plain(node_id)} ==\n")
            last_node = node_id
            sys.stdout.writelines(plain_log_line(line) + "\n" for line in text.removesuffix("\n").split("\n"))
        sys.stdout.flush()
        if is_last:
            return bool(last_node)
        time.sleep(LOOK_SECONDS)
