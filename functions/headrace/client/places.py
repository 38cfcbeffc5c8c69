"""Where things are on one machine: the home folder, its buckets, and the names of folders served as buckets."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.domain.errors import HeadraceError

HOME_VARIABLE = "HEADRACE_HOME"
DEFAULT_HOME = "~/.headrace"


class BadPlace(HeadraceError):
    """A folder or file that a job names cannot be used; the text says why and what to change."""


@dataclass(frozen=True)
class ServedFolder:
    """A folder that is a bucket for as long as the run lasts."""

    bucket: str
    folder: Path
    writable: bool


def home_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that keeps all state: the given one, or HEADRACE_HOME, or `~/.headrace`."""
    return Path(given or os.environ.get(HOME_VARIABLE) or DEFAULT_HOME).expanduser().absolute()


def bucket_folder(home: Path, bucket: str) -> Path:
    """Return where a bucket of this machine keeps its objects."""
    return home / "buckets" / bucket


def bucket_name(kind: str, label: str, identity: bytes) -> str:
    """Return a valid bucket name that tells its origin and is the same for the same identity.

    Bucket names have 3 to 63 characters of a-z, 0-9 and hyphens (S3 user guide, bucket naming rules).
    """
    readable = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:30].strip("-")
    parts = (kind, readable, hashlib.sha256(identity).hexdigest()[:12])
    return "-".join(part for part in parts if part)


def resolve_place(text: str, base: Path) -> Path:
    """Return the absolute path, links followed, of what a job names relative to `base`."""
    return (base / Path(text).expanduser()).resolve()


def refuse_overlap(one: str, first: Path, other: str, second: Path) -> None:
    """Raise BadPlace when one folder is the other or lies inside it; `one` and `other` are what they are called."""
    if first == second:
        raise BadPlace(f"{one} and {other} are the same folder, {first}; use different ones")
    if first.is_relative_to(second):
        raise BadPlace(f"{one} {first} lies inside {other} {second}; keep them apart")
    if second.is_relative_to(first):
        raise BadPlace(f"{one} {first} contains {other} {second}; keep them apart")


def remember_folder(home: Path, served: ServedFolder) -> None:
    """Keep which folder a bucket is, for commands that come later."""
    folder = home / "served"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / served.bucket).write_bytes(os.fsencode(served.folder))


def folder_of(home: Path, address: str) -> Path | None:
    """Return the folder that `s3://bucket/prefix` is on this machine, or None when it is not here."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    try:
        root = Path(os.fsdecode((home / "served" / bucket).read_bytes()))
    except OSError:
        root = bucket_folder(home, bucket)
    return root / prefix if root.is_dir() else None
