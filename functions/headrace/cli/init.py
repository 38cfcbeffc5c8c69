"""`headrace init`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from headrace.cli.options import Place, for_every_command
from headrace.domain.errors import HeadraceError
from headrace.local.packaged import packaged
from headrace.report.cells import cell

EXAMPLE_FILES = ("job.yaml", "train.py", "digits.tar.gz", "DATA.md")


class FilesInTheWay(HeadraceError):
    """The example would overwrite files."""


@click.command(epilog="Example: headrace init digits && headrace run digits/job.yaml")
@click.argument("folder", metavar="[DIR]", default="digits")
@for_every_command
def init(place: Place, folder: str) -> int:
    """Copy the digits example, ready to run.

    The files go into DIR (default: digits); none is ever overwritten.
    """
    target = Path(folder).expanduser()
    copy_example(target)
    written = [str(target / name) for name in EXAMPLE_FILES]
    place.answer({"files": written}, cell(f"wrote {', '.join(written)}; next: headrace run {target / 'job.yaml'}"))
    return 0


def copy_example(target: Path) -> None:
    """Copy the example's files into the folder, which is made. Raises FilesInTheWay rather than overwrite one."""
    taken = [name for name in EXAMPLE_FILES if (target / name).exists() or (target / name).is_symlink()]
    if taken:
        raise FilesInTheWay(f"{target} already holds {', '.join(taken)}; name another folder: headrace init NEW-FOLDER")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in EXAMPLE_FILES:
            shutil.copyfile(packaged("statemachines") / "examples" / "digits" / name, target / name)
    except OSError as error:
        raise FilesInTheWay(f"{target} cannot be written: {error.strerror}; name another folder") from error
