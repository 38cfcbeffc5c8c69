"""The functions that Step Functions adds to JSONata, with randomness from a generator of ours.

Source: docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html, section
"JSONata functions provided by Step Functions".
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from headrace.domain.names import versioned_uuid

Json = Any
ADDED_FUNCTIONS = frozenset({"hash", "parse", "partition", "random", "range", "uuid"})
_HASHES = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}


def uuid4(source: random.Random) -> str:
    """Return a version 4 UUID drawn from `source`."""
    return versioned_uuid(f"{source.getrandbits(128):032x}", 4)


def partition(items: list[Json], size: int) -> list[list[Json]]:
    """Split a list into lists of `size` items, the last one perhaps shorter. Raises ValueError below 1."""
    if size < 1:
        raise ValueError("$partition needs a chunk size of at least 1")
    return [items[start : start + size] for start in range(0, len(items), size)]


def number_range(first: int, last: int, step: int) -> list[int]:
    """Return the numbers from `first` to `last`, both included, `step` apart. Raises ValueError for step 0."""
    if step == 0:
        raise ValueError("$range needs a step other than 0")
    return list(range(first, last + (1 if step > 0 else -1), step))


def digest(text: str, algorithm: str) -> str:
    """Return the hash of the text in hexadecimal. Raises ValueError for an algorithm AWS does not list."""
    if algorithm not in _HASHES:
        raise ValueError(f"$hash knows {', '.join(_HASHES)}, not {algorithm!r}")
    return hashlib.new(_HASHES[algorithm], text.encode(), usedforsecurity=False).hexdigest()


def added_functions(source: random.Random) -> Mapping[str, Callable[..., Json]]:
    """Return AWS's additions by name, without the dollar sign."""

    def drawn(seed: float | None = None) -> float:
        # A seeded draw is reproducible on AWS too; the value itself is ours.
        return source.random() if seed is None else random.Random(seed).random()  # noqa: S311

    return {
        "hash": digest,
        "parse": json.loads,
        "partition": partition,
        "random": drawn,
        "range": number_range,
        "uuid": lambda: uuid4(source),
    }
