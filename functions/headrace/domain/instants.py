"""Instants as text: UTC, ISO 8601, with a Z, so that they sort as they follow each other."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def to_text(instant: datetime) -> str:
    """Return `2026-11-30T01:48:00.000Z`, in milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=1024)
def from_text(text: str) -> datetime:
    """Return the instant that `to_text` wrote.

    Raises ValueError for anything that is not ISO 8601 with a zone.
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; end it with Z")
    return instant


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one instant to another, negative when they are the other way round."""
    return (from_text(later) - from_text(earlier)).total_seconds()
