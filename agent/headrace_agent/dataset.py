"""What a dataset part says: which object becomes which file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from headrace_agent.fields import ConfigError, Fields
from headrace_agent.s3 import S3Address, parse_address


@dataclass(frozen=True)
class DatasetFile:
    """One object and the relative path it becomes; `etag` is as the manifest has it and may be empty."""

    source: S3Address
    path: str
    bytes: int
    etag: str


def parse_part(text: str | bytes, where: str) -> Iterator[DatasetFile]:
    """Yield the files of a part; raises ConfigError."""
    for fields in Fields.parse(text, where).sections("files"):
        try:
            source = parse_address(fields.text("source"))
        except ValueError as error:
            raise ConfigError(f"{fields.where}: {error}") from error
        yield DatasetFile(source, fields.text("path"), fields.integer("bytes"), fields.text("etag"))


def index_line(path: str, size_bytes: int, etag: str, version: str, source: str) -> str:
    """Return the line of the index that says what a file is; `version` is empty where the bucket keeps none.

    It is the version that was read, as the answer to the GET named it, not one that was listed: ListObjectsV2 names
    none, and ListObjectVersions goes through all that ever was. `If-Match` with the listed ETag makes both the same
    bytes; where an object was written again with those, it is the later version.
    """
    described = {"path": path, "bytes": size_bytes, "etag": etag, "version": version, "source": source}
    return json.dumps(described, ensure_ascii=False) + "\n"


def digest_line(path: str, size_bytes: int, etag: str) -> str:
    """Return the line that stands for a staged file in the digest of its node's share."""
    return f"{path}\t{size_bytes}\t{etag}"
