"""Turns safety layers off by name, so that what each one holds back can be seen."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from typing import Any
from unittest.mock import patch

from headrace.domain.launch import LaunchRequest
from headrace.domain.sweep import Decision, Opinion, Suspicion, decide
from headrace.handlers import on_sweep
from headrace.local.asl.definition import INVOKE_AND_WAIT, Machine, State, Task
from headrace.local.machines import compiled_machines
from headrace.local.simulated.site import SimulatedSite
from headrace.ports import LaunchResult

LAYERS: Mapping[str, str] = {
    "rule": "the rule that starts a decommission when an execution ends badly",
    "sweep": "the scheduled sweep",
    "lease": "what ends a machine from inside: its deadline and its idle lease",
    "catch": "every Catch of training_run",
    "retry": "every Retry of every machine",
    "heartbeat": "the heartbeat limit of the tasks that wait for agents",
    "client_token": "the token that makes a repeated launch the same launch",
    "tombstone": "the mark after which nothing may be launched",
    "event_id": "the record of events already applied",
    "confirm": "confirming by listing that machines are gone",
    "grace": "the time in which the sweep suspects no new machine",
    "second_look": "the second look after which the sweep acts",
    "time_limits": "the time-outs of the tasks that wait for agents",
}


FOR_EVER_SECONDS = 10.0**7


@cache
def machines_without(layers: frozenset[str]) -> dict[str, Machine]:
    """Return the machines with those layers taken out."""
    return {name: _machine(one, layers) for name, one in compiled_machines().items()}


def _machine(machine: Machine, layers: frozenset[str]) -> Machine:
    return replace(machine, states={name: _state(machine, one, layers) for name, one in machine.states.items()})


def _state(machine: Machine, state: State, layers: frozenset[str]) -> State:
    if not isinstance(state, Task):
        return state
    keeps_catch = "catch" not in layers or machine.name != "training_run"
    return replace(
        state,
        catch=state.catch if keeps_catch else (),
        retry=() if "retry" in layers else state.retry,
        heartbeat=None if "heartbeat" in layers else state.heartbeat,
        timeout=FOR_EVER_SECONDS if "time_limits" in layers and state.resource == INVOKE_AND_WAIT else state.timeout,
    )


def ablate(site: SimulatedSite, layers: frozenset[str]) -> None:
    """Take layers that live in the ports or functions out of a site. Raises ValueError for a name that is none."""
    if unknown := layers - set(LAYERS):
        raise ValueError(f"no safety layers: {sorted(unknown)}; there are {', '.join(LAYERS)}")
    ports: dict[str, Any] = {field.name: getattr(site.cloud, field.name) for field in fields(site.cloud)}
    if "client_token" in layers:
        ports["fleets"] = _Tokenless(ports["fleets"])
    if layers & {"tombstone", "event_id"}:
        ports["runs"] = _Forgetful(ports["runs"], layers)
    if "grace" in layers:
        ports["settings"] = replace(ports["settings"], boot_grace_seconds=0)
    site.cloud = replace(site.cloud, **ports)
    if "confirm" in layers:
        _confirm_nothing(site)


class _Tokenless:
    def __init__(self, port: Any) -> None:
        self._port = port
        self._numbers = itertools.count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def launch(self, request: LaunchRequest) -> LaunchResult:
        token = f"{request.client_token}-{next(self._numbers)}"
        result: LaunchResult = self._port.launch(replace(request, client_token=token))
        return result


class _Forgetful:
    def __init__(self, port: Any, layers: frozenset[str]) -> None:
        self._port = port
        self._layers = layers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def insert(self, run_id: str, kind: str, name: str, item: Mapping[str, Any]) -> bool:
        is_new: bool = self._port.insert(run_id, kind, name, item)
        return is_new or (kind == "event" and "event_id" in self._layers)

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Any] | None:
        item: dict[str, Any] | None = self._port.read(run_id, kind, name)
        if item and kind == "event" and "event_id" in self._layers:
            return {**item, "is_applied": False}
        if item and kind == "run" and "tombstone" in self._layers:
            return {**item, "tombstone_at": None}
        return item


def _confirm_nothing(site: SimulatedSite) -> None:
    invoke = site.invoke

    async def confirmed(function: str, payload: Any) -> Any:
        return {"remaining": 0} if function == "ConfirmTerminated" else await invoke(function, payload)

    site.invoke = confirmed


def sweeping(layers: frozenset[str]) -> AbstractContextManager[object]:
    """Within, the sweep acts at its first look if the second one is turned off."""
    return patch.object(on_sweep, "decide", _decide_at_once) if "second_look" in layers else nullcontext()


def _decide_at_once(
    opinions: Iterable[Opinion], _seen: Mapping[str, Suspicion], now: datetime, _grace_seconds: float
) -> Decision:
    opinions = tuple(opinions)
    return decide(opinions, {one.subject: Suspicion(one.finding, now) for one in opinions}, now, 0.0)
