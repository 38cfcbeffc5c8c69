"""The index of the data set: one JSON line per file, so that a job need not list S3 or walk folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import obstore

from headrace_agent.dataset import index_line, parse_part
from headrace_agent.node import Node
from headrace_agent.s3 import open_bucket

BUNDLE_BYTES = 1024 * 1024


def bundled(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines in pieces of about 1 MiB."""
    bundle = bytearray()
    for line in lines:
        bundle += line
        if len(bundle) >= BUNDLE_BYTES:
            yield bytes(bundle)
            bundle.clear()
    yield bytes(bundle)


def write_index(node: Node, parts: Sequence[str], target: Path) -> None:
    """Write the index from its parts below the run's prefix: JSON lines as they are, and parts of the manifest.

    Raises ConfigError for a part that is none, and what obstore raises.
    """
    store = open_bucket(node.run_bucket)
    with target.open("wb") as file:
        for part in parts:
            answer = obstore.get(store, node.prefix + part)
            if part.endswith(".jsonl"):
                file.writelines(answer.stream(BUNDLE_BYTES))
                continue
            for one in parse_part(bytes(answer.bytes()), part):
                file.write(index_line(one.path, one.bytes, one.etag, "", str(one.source)).encode())
