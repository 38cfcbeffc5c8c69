"""Strikes one invocation of a function just before a certain one of its calls, whatever port that call is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.faulty import PORTS
from headrace.ports import Cloud

MIDWAY = frozenset({"paused", "dies", "overlapped"})
"""Kinds that strike in the midst of an invocation; `value` is the call before which they do, counted from 1."""
Strike = Callable[[Fault], None]


def struck_midway(cloud: Cloud, faults: Sequence[Fault], strike: Strike) -> Cloud:
    """Return the cloud for one invocation: `strike` is told each fault when its call is due."""
    calls = _Calls(faults, strike)
    ports: dict[str, Any] = {name: _CountedPort(getattr(cloud, name), calls) for name in PORTS}
    return replace(cloud, **ports)


class _Calls:
    def __init__(self, faults: Sequence[Fault], strike: Strike) -> None:
        self._faults = faults
        self._strike = strike
        self._count = 0

    def next(self) -> None:
        self._count += 1
        for fault in self._faults:
            if fault.value == self._count:
                self._strike(fault)


class _CountedPort:
    def __init__(self, port: Any, calls: _Calls) -> None:
        self._port = port
        self._calls = calls

    def __getattr__(self, method: str) -> Any:
        return partial(self._call, getattr(self._port, method))

    def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._calls.next()
        return call(*args, **kwargs)
