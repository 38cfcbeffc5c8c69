"""Which folder is which bucket, as a configuration of rclone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def is_bucket_name(name: str) -> bool:
    """Tell whether S3 allows the name for a bucket (S3 user guide, bucket naming rules)."""
    return _BUCKET.fullmatch(name) is not None


@dataclass(frozen=True)
class ServedFolder:
    """One bucket: a folder that is read where it lies, and written only if `writable`.

    Raises ValueError for a bad bucket name, a folder that is not there, or a path that a configuration cannot hold.
    """

    bucket: str
    folder: Path
    writable: bool

    def __post_init__(self) -> None:
        if not is_bucket_name(self.bucket):
            raise ValueError(f"{self.bucket!r} is not a bucket name: 3 to 63 of a-z, 0-9, '.' and '-'")
        if not self.folder.is_dir():
            raise ValueError(f"asked to serve {str(self.folder)!r} as bucket {self.bucket}: there is no such folder")
        path = str(self.folder.resolve())
        if path != path.strip() or not path.isprintable():
            raise ValueError(
                f"the folder {path!r} cannot be served: rename it without odd blanks or control characters"
            )


def rclone_config(served: Sequence[ServedFolder], empty: Path) -> str:
    """Return a configuration whose remote `served:` has one directory per bucket.

    rclone has no read-only folder, but a union whose members are all read-only; it wants two members, hence `empty`.
    Links inside a folder that is only read are followed, since data sets are often made of them.
    """
    sections = ["[links]\ntype = local\ncopy_links = true\n", "[plain]\ntype = local\n"]
    sections += [f"[nothing]\ntype = alias\nremote = plain:{empty.resolve()}\n"]
    for number, one in enumerate(served):
        source = "plain" if one.writable else "links"
        sections.append(f"[folder{number}]\ntype = alias\nremote = {source}:{one.folder.resolve()}\n")
        if not one.writable:
            sections.append(f"[bucket{number}]\ntype = union\nupstreams = folder{number}::ro nothing::ro\n")
    upstreams = " ".join(
        f"{one.bucket}={'folder' if one.writable else 'bucket'}{number}:" for number, one in enumerate(served)
    )
    return "\n".join([*sections, f"[served]\ntype = combine\nupstreams = {upstreams}\n"])
