"""`headrace run`."""

from __future__ import annotations

import sys

import click

from headrace.cli.following import follow
from headrace.cli.interrupts import Interrupts
from headrace.cli.options import EXIT_FAILED, EXIT_STOPPED, Place, aside, for_every_command
from headrace.cli.reading import read_and_prepare
from headrace.cli.screens import JsonScreen, LineScreen, LiveScreen, Screen, UnbreakableScreen
from headrace.client import opening
from headrace.client.client import Client
from headrace.client.dry_run import plan_without_running
from headrace.client.prepare import PreparedJob
from headrace.local.faults import Faults, UnknownFault
from headrace.report.console import console_for
from headrace.report.end_page import Ended


def _faults(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        Faults.parse(given)
    except UnknownFault as error:
        raise click.BadParameter(str(error)) from None
    return given


@click.command(epilog="Example: headrace run job.yaml --results results")
@click.argument("job", metavar="JOB.yaml", type=click.Path())
@click.option("--results", metavar="DIR", help="Folder or s3:// address for the results, instead of the job's.")
@click.option("--fault", "faults", multiple=True, callback=_faults, help="Make something fail: capacity:TYPE, ...")
@click.option("--nodes", type=click.Choice(["process", "vm"]), default="process", help="What a node is here.")
@for_every_command
def run(place: Place, job: str, results: str | None, faults: tuple[str, ...], nodes: str) -> int:
    """Run a job, from the plan to the receipt.

    Relative paths in JOB.yaml start from its folder; `results: local` means ./headrace-results where you are. A run's
    results go into a folder named for the run. Ctrl-C stops the run and releases everything it started. Nodes are
    processes; with --nodes vm they are virtual machines under QEMU, in which disks are really cut, striped, served
    over the network and mounted.
    """
    with Interrupts() as interrupts:
        prepared = read_and_prepare(place, job, results)
        screen = UnbreakableScreen(_screen(place))
        for note in prepared.notes:
            aside(note)
        screen.plan(plan_without_running(prepared, place.home))
        interrupts.hold()
        client = Client(place.home, faults, opening.open_vm_site if nodes == "vm" else None)
        return _run(client, prepared, screen, interrupts)


def _run(client: Client, prepared: PreparedJob, screen: Screen, interrupts: Interrupts) -> int:
    with client:
        if interrupts.count:
            return EXIT_STOPPED
        handle = client.launch(prepared)
        ended = follow(handle, screen, interrupts)
        failure = handle.failure
    if ended is None:
        aside(f"the run was refused: {failure}")
        return EXIT_STOPPED if interrupts.count else EXIT_FAILED
    screen.end(ended)
    return _exit_code(ended, is_interrupted=interrupts.count > 0)


def _exit_code(ended: Ended, *, is_interrupted: bool) -> int:
    if ended.receipt.status == "SUCCEEDED":
        return 0
    return EXIT_STOPPED if ended.receipt.status == "STOPPED" or is_interrupted else EXIT_FAILED


def _screen(place: Place) -> Screen:
    if place.as_json:
        return JsonScreen(sys.stdout, sys.stderr)
    console = console_for(sys.stdout)
    return LiveScreen(console) if console.is_terminal and not console.is_dumb_terminal else LineScreen(sys.stdout)
