"""Reading listings to their end, which some services never announce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from botocore.exceptions import PaginationError

T = TypeVar("T")


def bounded(pages: Iterable[T], most: int) -> Iterator[T]:
    """Yield the pages, so many at most, and no more once a service answers one token for the second time.

    Both are how a listing goes on for ever (aws-facts.md section 3).
    """
    try:
        yield from islice(pages, most)
    except PaginationError:
        return
