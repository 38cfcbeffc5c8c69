"""Wraps each port of a simulated cloud so that the planned faults strike its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.ports import Cloud

PORTS = ("fleets", "nodes", "objects", "bus", "runs", "executions", "prices")
UNTOUCHED = ("elsewhere", "clock", "entropy", "settings", "checks")
Effect = Callable[..., Any]
"""Given the fault, the call and its arguments; returns what the caller is told, or raises."""
Note = Callable[[str, str], None]


def faulty(cloud: Cloud, plan: FaultPlan, effects: Mapping[str, Effect], note: Note) -> Cloud:
    """Return the same cloud, of which the planned calls go wrong; ports that no fault touches stay as they are."""
    wrapped: dict[str, Any] = {
        name: _FaultyPort(name, getattr(cloud, name), plan, effects, note)
        for name in PORTS
        if plan.touches_any(f"{name}.")
    }
    kept = {name: getattr(cloud, name) for name in (*PORTS, *UNTOUCHED) if name not in wrapped}
    return Cloud(**wrapped, **kept)


class _FaultyPort:
    """Any port; a method without planned faults is the port's own."""

    def __init__(self, name: str, port: object, plan: FaultPlan, effects: Mapping[str, Effect], note: Note) -> None:
        self._port = port
        self._plan = plan
        self._effects = effects
        self._note = note
        self._name = name

    def __getattr__(self, method: str) -> Any:
        where = f"{self._name}.{method}"
        call = getattr(self._port, method)
        found = partial(self._call, where, call) if self._plan.touches(where) else call
        setattr(self, method, found)
        return found

    def _call(self, where: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        for fault in self._plan.next(where):
            self._note("fault", str(fault))
            call = self._struck(fault, call)
        return call(*args, **kwargs)

    def _struck(self, fault: Fault, call: Callable[..., Any]) -> Callable[..., Any]:
        return partial(self._effects[fault.kind], fault, call)
