"""Options that every command has, and how their errors read."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headrace.cli.interrupts import Interrupts
from headrace.client import opening
from headrace.client.opening import open_run_table
from headrace.client.places import HOME_VARIABLE, home_folder
from headrace.client.recovery import recover_dead_runs
from headrace.client.run_table import RunTable
from headrace.report.console import print_page
from headrace.report.plain_text import plain

EXIT_FAILED = 1
EXIT_BAD_USAGE = 2
EXIT_STOPPED = 130


@dataclass(frozen=True)
class Place:
    """What every command works on: the home folder, and whether the answer is for a program."""

    home: Path
    as_json: bool

    @functools.cached_property
    def table(self) -> RunTable:
        """What is known of all runs."""
        return open_run_table(self.home)

    def close(self) -> None:
        """Close the table, if it was used."""
        if "table" in self.__dict__:
            self.table.close()

    def answer(self, document: Mapping[str, Any], page: Any) -> None:
        """Print the answer: one JSON document for a program, the page for a person."""
        if self.as_json:
            sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
            sys.stdout.flush()
        else:
            print_page(sys.stdout, page)


def for_every_command(command: Callable[..., int]) -> Callable[..., Any]:
    """Add `--home` and `--json`, hand the command its Place, and first end runs whose process was killed."""

    def wrapped(context: click.Context, /, **arguments: Any) -> Any:
        above = context.find_root().params.get("home")
        place = Place(home_folder(arguments.pop("home") or above), arguments.pop("as_json"))
        context.call_on_close(place.close)
        recover_first(place)
        return command(place, **arguments)

    functools.update_wrapper(wrapped, command)
    with_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs.")
    with_home = click.option("--home", metavar="DIR", help=f"Folder of all state (default: {HOME_VARIABLE}).")
    return with_json(with_home(click.pass_context(wrapped)))


def recover_first(place: Place) -> None:
    """End runs whose driving process was killed; a signal meanwhile ends this command only when that is done."""
    if not place.home.is_dir():
        return
    with Interrupts() as interrupts:
        interrupts.hold()
        for run_id in recover_dead_runs(place.table, place.home, opening.open_local_site, aside):
            aside(f"{run_id}: the process that drove the run was killed; everything of it is released now")
    if interrupts.count:
        raise KeyboardInterrupt


def aside(text: str) -> None:
    """Tell a person something that is not the answer."""
    click.echo(plain(text), err=True)
