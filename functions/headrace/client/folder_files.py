"""Lists a local folder as the bucket that it becomes, and finds what cannot be served before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from headrace.client.places import BadPlace
from headrace.ports import ObjectInfo


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield every file below the folder, links followed, as the S3 endpoint serves a folder that is only read.

    Raises BadPlace for a link that leads nowhere or back to a folder above it, and for a folder that cannot be read.
    """
    yield from _walk(folder, (folder.resolve(),))


def _walk(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise BadPlace(f"data: {folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir():
            real = path.resolve() if entry.is_symlink() else above[-1] / entry.name
            if real in above:
                raise BadPlace(f"data: the link {path} leads back to {real}, a folder above it; remove the link")
            yield from _walk(path, (*above, real))
        elif entry.is_file():
            yield path
        elif entry.is_symlink():
            raise BadPlace(f"data: the link {path} leads nowhere; remove it or restore what it points to")


def list_folder(folder: Path) -> list[ObjectInfo]:
    """Return the folder's files as objects, in the order of their keys. Raises BadPlace as `walk_files` does."""
    found = [
        ObjectInfo(path.relative_to(folder).as_posix(), path.stat().st_size, "", "STANDARD")
        for path in walk_files(folder)
    ]
    return sorted(found, key=lambda one: os.fsencode(one.key))
