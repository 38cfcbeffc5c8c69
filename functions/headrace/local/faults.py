"""Faults that a person declares for a local run: machines that are not to be had, buckets that refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
FORMS = """  capacity:i4i.large      no machine of a type
  capacity:i4i.large=2    only two of them
  capacity:us-east-1a     no machine in a zone
  capacity:*              no machine at all
  denied:some-bucket      every call for a bucket is denied
  denied:data-bucket      the same for every folder that is served as data
  denied:results-bucket   the same for every folder that is served for results"""


class UnknownFault(ValueError):
    """The text names no fault that can be injected."""

    def __init__(self, text: str, found: str) -> None:
        super().__init__(f"--fault {text!r}: {found}. The faults are:\n{FORMS}")


@dataclass(frozen=True)
class Shortage:
    """At most `left` machines of a type, in a zone, or at all (`*`)."""

    of: str
    left: int = 0

    def applies(self, instance_type: str, zone: str) -> bool:
        """Tell whether the shortage is one of that type or zone."""
        return self.of in ("*", instance_type, zone)


@dataclass(frozen=True)
class Faults:
    """What goes wrong in a run, as declared."""

    shortages: tuple[Shortage, ...] = ()
    denied_buckets: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """Return the faults that the texts name. Raises UnknownFault."""
        shortages, denied = [], set()
        for text in texts:
            kind, _, what = text.partition(":")
            if kind == "capacity":
                shortages.append(_shortage(text, what))
            elif kind == "denied" and _BUCKET.fullmatch(what):
                denied.add(what)
            elif kind == "denied":
                raise UnknownFault(text, f"{what!r} is not a bucket name")
            else:
                raise UnknownFault(text, f"there is no kind of fault called {kind!r}")
        return cls(tuple(shortages), frozenset(denied))

    def denies(self, bucket: str, serves: str | None = None) -> bool:
        """Tell whether the bucket is denied by its name, or by what it serves: `data` or `results`."""
        return bucket in self.denied_buckets or f"{serves}-bucket" in self.denied_buckets

    def available(self, instance_type: str, zone: str) -> int | None:
        """Return how many machines of that type the zone has, or None for as many as are asked."""
        return min((one.left for one in self.shortages if one.applies(instance_type, zone)), default=None)


def _shortage(text: str, what: str) -> Shortage:
    of, is_limited, left = what.partition("=")
    if of != "*" and not _TYPE.fullmatch(of) and not _ZONE.fullmatch(of):
        raise UnknownFault(text, f"{of!r} is neither an instance type, nor a zone, nor *")
    if is_limited and not re.fullmatch(r"[0-9]{1,4}", left):
        raise UnknownFault(text, f"{left!r} is not a number of machines")
    return Shortage(of, int(left) if is_limited else 0)
