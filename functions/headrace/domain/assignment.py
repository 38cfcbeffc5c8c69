"""Which object becomes which file, what cannot become one, and which volume each file goes to."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from headrace.domain.dataset import DatasetFile
from headrace.domain.demand import stored_bytes

MAX_PATH_BYTES = 4_000
MAX_COMPONENT_BYTES = 255
"""Linux's NAME_MAX, which XFS keeps."""
ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects answer a GET with 403 until they are restored."""

RESERVED = ".headrace-"
"""What the first folder of a path must not begin with: staging keeps such names for itself."""

_PLAIN = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,200}+/){0,10}+[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,200}+")
"""Paths that nothing can be said against; most keys of data sets are such, and this tells it fastest."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class ListedObject(Protocol):
    """One object as a listing shows it."""

    @property
    def key(self) -> str:
        """The object's key, with its prefix."""
        ...

    @property
    def bytes(self) -> int:
        """Its size."""
        ...

    @property
    def storage_class(self) -> str:
        """Its storage class, empty when the listing shows none."""
        ...


class OpenKeys(NamedTuple):
    """What a check of later keys must remember of earlier ones: those that may yet turn out to be folders too."""

    keys: tuple[str, ...] = ()


def assign(files: Iterable[DatasetFile], volumes: int) -> list[list[DatasetFile]]:
    """Return the files of each volume, balanced by the bytes they occupy, the same for the same files.

    Largest first onto the least loaded volume: none holds more than the mean and the largest file less its own mean
    (Graham 1969), which the plan counts on. Raises ValueError for less than one volume.
    """
    if volumes < 1:
        raise ValueError(f"files need at least one volume, asked for {volumes}")
    shares: list[list[DatasetFile]] = [[] for _ in range(volumes)]
    loads = [(0, index) for index in range(volumes)]
    for file in sorted(files, key=lambda one: (-one.bytes, one.path)):
        load, index = loads[0]
        shares[index].append(file)
        heapq.heapreplace(loads, (load + stored_bytes(file.bytes, 1), index))
    return [sorted(share, key=lambda one: one.path) for share in shares]


def is_folder_marker(listed: ListedObject) -> bool:
    """Tell whether the object only stands for a folder, as consoles write them: no bytes and a slash at the end."""
    return listed.bytes == 0 and (listed.key.endswith("/") or not listed.key)


def to_path(key: str, prefix: str) -> str:
    """Return the relative path that the object becomes: the key without the prefix, so that no two keys meet.

    Raises ValueError, with the reason, when the key is not below the prefix or cannot become a file safely.
    """
    if not key.startswith(prefix):
        raise ValueError(f"{key!r} is not below {prefix!r}")
    path = key[len(prefix) :]
    fault = _path_fault(path)
    if fault:
        raise ValueError(f"{key!r} {fault}")
    return path


def path_faults(objects: Sequence[ListedObject], prefix: str) -> tuple[str, ...]:
    """Return a reason for each object that cannot become a file, whatever order they come in."""
    return page_faults(objects, prefix, OpenKeys())[0]


def page_faults(objects: Sequence[ListedObject], prefix: str, before: OpenKeys) -> tuple[tuple[str, ...], OpenKeys]:
    """Return the reasons for one page of a listing in key order, and what the next page's check must be given.

    A key that is a file and a folder at once is found over page borders: all keys between `a` and `a/b` begin with
    `a`, so only those that the last key begins with stay open.
    """
    faults: list[str] = []
    still_open = list(before.keys)
    for listed in sorted(objects, key=lambda one: one.key):
        if is_folder_marker(listed):
            continue
        fault = _object_fault(listed, prefix) or _clash(listed.key, still_open)
        if fault:
            faults.append(f"{listed.key[:200]!r} {fault}")
        still_open.append(listed.key)
    return tuple(faults), OpenKeys(tuple(still_open))


def _clash(key: str, still_open: list[str]) -> str | None:
    """Return the fault when an open key is a folder of this one, having closed those that cannot be one any more.

    In key order, `a/...` comes after `a!` and before `aa`.
    """
    still_open[:] = [one for one in still_open if key.startswith(one) and key[len(one) : len(one) + 1] <= "/"]
    folder = next((one for one in still_open if key.startswith(f"{one}/")), None)
    return f"needs a folder where the object {folder[:200]!r} is a file; rename one" if folder is not None else None


def _object_fault(listed: ListedObject, prefix: str) -> str | None:
    if listed.storage_class in ARCHIVED_CLASSES:
        return f"is archived ({listed.storage_class}); restore it first"
    if not listed.key.startswith(prefix):
        return f"is not below {prefix!r}"
    return _path_fault(listed.key[len(prefix) :])


def _path_fault(path: str) -> str | None:
    """Return why a relative path cannot become a file safely, or None."""
    if _PLAIN.fullmatch(path):
        return None
    if path.startswith(RESERVED):
        return f"begins with {RESERVED!r}, which staging keeps for itself; rename it"
    if _UNPRINTABLE.search(path):
        return "holds a control character; rename it"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"is a path of more than {MAX_PATH_BYTES:,} bytes; shorten it"
    return next((fault for part in path.split("/") if (fault := _part_fault(part))), None)


def _part_fault(part: str) -> str | None:
    if not part:
        return "begins or ends with a slash, or has two in a row; rename it"
    if part in (".", ".."):
        return f"has {part!r} between slashes, which means another folder; rename it"
    if len(part.encode()) > MAX_COMPONENT_BYTES:
        return f"has a name of more than {MAX_COMPONENT_BYTES} bytes between slashes; shorten it"
    return None
