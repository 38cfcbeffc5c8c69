"""Packs the code of a job into one archive whose bytes depend on the files alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.client.places import BadPlace

LEFT_OUT_NAMES = frozenset({".git", "__pycache__", ".venv"})
ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
CODE_BYTES_MAX = 256 * 1024**2
"""All files together, before compression: code travels to every machine, data has better ways."""


@dataclass(frozen=True)
class CodeArchive:
    """The packed code, where it belongs in the run bucket, and what was left out of it and why."""

    packed: bytes
    left_out: tuple[str, ...] = ()
    ending: str = ".tar.gz"

    @property
    def key(self) -> str:
        """Return the key, the same for the same bytes."""
        return f"code/{hashlib.sha256(self.packed).hexdigest()}{self.ending}"


def pack_code(code: Path, apart: Collection[Path] = ()) -> CodeArchive:
    """Return the folder's files, or the one file, as a .tar.gz; an archive stays as it is.

    `.git`, `__pycache__` and `.venv` are left out, and so are `apart`: data and results that lie inside the folder.
    A link is packed as the file it points to when that lies inside the folder, and left out otherwise.
    Raises BadPlace when there is nothing, or more than `CODE_BYTES_MAX`.
    """
    if not code.exists():
        raise BadPlace(f"code: {code} does not exist; name a folder, a file or an archive")
    ending = next((one for one in ARCHIVE_ENDINGS if code.is_file() and code.name.endswith(one)), None)
    if ending is not None:
        return _as_it_is(code, ending)
    left_out: list[str] = []
    files = [(code.name, code)] if code.is_file() else sorted(_files(code, set(apart), left_out))
    if not files:
        raise BadPlace(f"code: {code} holds no files to pack; name the folder with the training script")
    return CodeArchive(_packed(code, files), tuple(left_out))


def _as_it_is(code: Path, ending: str) -> CodeArchive:
    if code.stat().st_size > CODE_BYTES_MAX:
        raise BadPlace(f"code: {code} is larger than {CODE_BYTES_MAX // 1024**2} MiB; {_ADVICE}")
    return CodeArchive(code.read_bytes(), ending=ending)


_ADVICE = "put data into the data set and packages into environment.requirements"


def _files(root: Path, apart: set[Path], left_out: list[str]) -> Iterator[tuple[str, Path]]:
    def note(error: OSError) -> None:
        left_out.append(f"{Path(error.filename).relative_to(root)} (cannot be read: {error.strerror})")

    for folder, folders, names in os.walk(root, onerror=note):
        here = Path(folder)
        linked = [name for name in folders if (here / name).is_symlink()]
        left_out.extend(f"{(here / name).relative_to(root)} (a link to a folder)" for name in linked)
        skipped = {name for name in (*folders, *names) if name in LEFT_OUT_NAMES or here / name in apart}
        folders[:] = [name for name in folders if name not in skipped.union(linked)]
        for path in (here / name for name in names if name not in skipped):
            fault = _fault(path, root)
            if fault is None:
                yield path.relative_to(root).as_posix(), path
            else:
                left_out.append(f"{path.relative_to(root)} ({fault})")


def _fault(path: Path, root: Path) -> str | None:
    if not path.name.isprintable():
        return "a name that is not plain text"
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        return "a link that leads out of the folder"
    try:
        return None if stat.S_ISREG(path.stat().st_mode) else "not a regular file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _packed(code: Path, files: list[tuple[str, Path]]) -> bytes:
    packed = io.BytesIO()
    room = CODE_BYTES_MAX
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, path in files:
            room -= path.stat().st_size
            if room < 0:
                raise BadPlace(f"code: {code} holds more than {CODE_BYTES_MAX // 1024**2} MiB; {_ADVICE}")
            _add(tar, name, path)
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    body = path.read_bytes()
    member = tarfile.TarInfo(name)
    member.size = len(body)
    member.mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
    tar.addfile(member, io.BytesIO(body))
