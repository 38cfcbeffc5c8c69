"""Carries events to their handlers: lost, doubled, late, forged as planned, and held back while nobody is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.functions import RETRY_SECONDS, Functions
from headrace.local.simulated.midway import MIDWAY
from headrace.local.simulated.worlds import hold_plane, plane_world
from headrace.ports import Json

Arrive = Callable[[Mapping[str, Json]], None]
OVERSIZE = "x" * 20_000


class SimulatedDeliveries:
    """The bus between agents, executions and handlers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, functions: Functions, plan: FaultPlan, note: Note) -> None:
        self._loop = loop
        self._functions = functions
        self._plan = plan
        self._note = note
        self._world = plane_world()
        self._held: list[tuple[str, Json]] = []
        self._down_until = 0.0
        self.echo_seconds = 0.0
        """After how long the bus delivers each event of an agent a second time; 0 for never."""

    def deliver(self, where: str, function: str, envelope: dict[str, Json]) -> None:
        """Hand the event to the handler, as the planned faults of that place let it."""
        faults = self._plan.next(where)
        for fault in faults:
            self._note("fault", str(fault))
        if not any(fault.kind in ("lost", "late") for fault in faults):
            self._arrive(function, envelope, midway=[fault for fault in faults if fault.kind in MIDWAY])
            if self.echo_seconds and where.startswith("event."):
                self._arrive(function, envelope, self.echo_seconds)
        for fault in faults:
            self._strike(fault, function, envelope)

    def _strike(self, fault: Fault, function: str, envelope: dict[str, Json]) -> None:
        if fault.kind == "late":
            self._arrive(function, envelope, fault.seconds)
        elif fault.kind == "doubled":
            for copy in range(1, fault.value):
                self._arrive(function, envelope, copy * fault.seconds)
        elif fault.kind == "forged":
            for forgery in forgeries(envelope):
                self._arrive(function, forgery, fault.seconds)

    def _arrive(self, function: str, envelope: Json, seconds: float = 0.0, midway: Sequence[Fault] = ()) -> None:
        if seconds:
            self._loop.call_later(seconds, self._attend, function, envelope, context=self._world)
        else:
            self._loop.call_soon(self._attend, function, envelope, midway, context=self._world)

    def _attend(self, function: str, envelope: Json, midway: Sequence[Fault] = ()) -> None:
        if self._loop.time() < self._down_until:
            self._held.append((function, envelope))
        else:
            self._functions.attend(function, envelope, RETRY_SECONDS, midway)

    def hold(self, seconds: float) -> None:
        """Let the whole control plane stand still that long: no timer, no function, events wait."""
        if self._loop.time() < self._down_until:
            return
        self._note("control plane", f"dead for {seconds:g} s")
        self._down_until = self._loop.time() + seconds
        hold_plane(self._loop, seconds)
        self._loop.call_later(seconds, self._come_back, context=self._world)

    def _come_back(self) -> None:
        self._note("control plane", "back")
        held, self._held = self._held, []
        for function, envelope in held:
            self._functions.attend(function, envelope)


def forgeries(envelope: dict[str, Json]) -> list[dict[str, Json]]:
    """Return what someone without the key could make of an event: none of these may change anything."""
    detail: dict[str, Any] = envelope["detail"]
    done = {"manifest": "results/none/manifest.json", "files": 0, "bytes": 0}
    changed: list[dict[str, Any]] = [
        {"detail-type": "Job Done", "detail": {**detail, "body": done}},
        {"detail-type": "Node Leaving", "detail": {**detail, "sequence": 10**9, "body": {"reason": "forged"}}},
        {"detail": {**detail, "hmac": "0" * 64}},
        {"detail": {**detail, "node_id": "i-00000000000000000"}},
        {"detail": {**detail, "attempt": 99}},
        {"detail": {**detail, "body": {**detail["body"], "note": OVERSIZE}}},
        {"source": "somebody.else"},
    ]
    return [{**envelope, **change, "is_forged": True} for change in changed]
