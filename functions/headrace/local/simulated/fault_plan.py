"""Faults as values: what goes wrong, where and when, so that a run can be replayed and its faults made fewer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, order=True)
class Fault:
    """One fault.

    `where` is a port call (`fleets.launch`), a function (`invoke.TrainJob`), a delivery (`event.Job Done`,
    `status.FAILED`), `machine` or `control`. `nth` counts from 1 there: calls, deliveries, machines launched.
    `value` and `seconds` mean what the kind says.
    """

    kind: str
    where: str
    nth: int = 1
    value: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.kind}@{self.where}#{self.nth}"
            + f"={self.value}" * bool(self.value)
            + (f"~{self.seconds:g}s" if self.seconds else "")
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the fault that `str` wrote. Raises ValueError."""
        kind, _, rest = text.partition("@")
        rest, _, seconds = rest.partition("~")
        rest, _, value = rest.partition("=")
        where, _, nth = rest.partition("#")
        if not kind or not where or not nth.isdecimal():
            raise ValueError(f"{text!r} is no fault; write kind@where#nth=value~seconds")
        return cls(kind, where, int(nth), int(value or 0), float(seconds.removesuffix("s") or 0))


class FaultPlan:
    """The faults of one run, and which of them came to be."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults: Sequence[Fault] = tuple(faults)
        self.injected: list[Fault] = []
        self._by_where: dict[str, dict[int, list[Fault]]] = defaultdict(lambda: defaultdict(list))
        self._counts: Counter[str] = Counter()
        for fault in self.faults:
            self._by_where[fault.where][fault.nth].append(fault)

    def touches(self, where: str) -> bool:
        """Tell whether any fault is planned there."""
        return where in self._by_where

    def touches_any(self, start: str) -> bool:
        """Tell whether any fault is planned at a place that begins so."""
        return any(where.startswith(start) for where in self._by_where)

    def next(self, where: str) -> Sequence[Fault]:
        """Count one more call there and return the faults that strike it."""
        found = self._by_where.get(where)
        if found is None:
            return ()
        self._counts[where] += 1
        struck = found.get(self._counts[where], ())
        self.injected.extend(struck)
        return struck

    def at(self, where: str) -> Sequence[Fault]:
        """Return every fault planned there, in order of `nth`; they count as injected when they are told so."""
        by_nth = self._by_where.get(where, {})
        return [fault for nth in sorted(by_nth) for fault in by_nth[nth]]
