"""The golden cases: what AWS does, by source, held against the interpreter on the simulated loop."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.local.asl.api_errors import InvalidToken, TaskDoesNotExist, TaskTimedOut
from headrace.local.interpreter import ExecutionDescription
from tests.local.asl.scripted import START, World, machine

Case = dict[str, Any]
_FOLDER = Path(__file__).parents[2] / "golden" / "asl"
_CASES: list[Case] = [
    case for file in sorted(_FOLDER.glob("*.yaml")) for case in yaml.safe_load(file.read_text(encoding="utf-8"))
]
_KNOWN = {
    *("name", "source", "assumed", "input", "states", "functions", "callbacks", "stop", "machine_timeout"),
    *("children", "child_timeout", "put_events", "expect"),
}


@pytest.mark.parametrize("case", _CASES, ids=[case["name"] for case in _CASES])
def test_a_machine_ends_as_it_does_on_aws(case: Case) -> None:
    world = _world(case)
    refusals = _schedule(world, case)
    try:
        description = world.run(case["input"])
        _let_callbacks_happen(world, case)
        _hold(case["expect"], description, world)
        assert refusals == [callback.get("refused") for callback in case.get("callbacks", [])]
    finally:
        world.close()


def test_every_golden_case_says_where_it_comes_from() -> None:
    assert len({case["name"] for case in _CASES}) == len(_CASES)
    for case in _CASES:
        assert bool(case.get("source")) != bool(case.get("assumed")), case["name"]
        assert not set(case) - _KNOWN, case["name"]


def _world(case: Case) -> World:
    children = {name: machine(states, case.get("child_timeout")) for name, states in case.get("children", {}).items()}
    machines = {"main": machine(case["states"], case.get("machine_timeout")), **children}
    return World(machines, case.get("functions"), case.get("put_events"))


def _schedule(world: World, case: Case) -> list[str | None]:
    refusals: list[str | None] = []
    for callback in case.get("callbacks", []):
        world.loop.call_at(callback["at"], partial(_note_refusal, refusals, world, callback))
    if "stop" in case:
        how = case["stop"]
        arn = "arn:aws:states:local:000000000000:execution:main:case"
        world.loop.call_at(how["at"], lambda: world.interpreter.stop_execution(arn, how.get("error"), how.get("cause")))
    return refusals


def _note_refusal(refusals: list[str | None], world: World, callback: Mapping[str, Any]) -> None:
    refusals.append(_call_back(world, callback))


def _call_back(world: World, callback: Mapping[str, Any]) -> str | None:
    token = callback["token_text"] if "token_text" in callback else world.tokens[callback["token"]]
    try:
        if "success" in callback:
            world.interpreter.send_task_success(token, callback["success"])
        elif "failure" in callback:
            world.interpreter.send_task_failure(token, *callback["failure"])
        else:
            world.interpreter.send_task_heartbeat(token)
    except (TaskTimedOut, TaskDoesNotExist, InvalidToken) as error:
        return type(error).__name__
    return None


def _let_callbacks_happen(world: World, case: Case) -> None:
    last = max((callback["at"] for callback in case.get("callbacks", [])), default=0)
    happened = world.loop.create_future()
    world.loop.call_at(max(last, world.loop.time()), happened.set_result, None)
    world.loop.run_until_complete(happened)


def _hold(expect: Mapping[str, Any], found: ExecutionDescription, world: World) -> None:
    assert found.status == expect["status"], f"{found.error}: {found.cause}"
    for name in ("output", "error", "cause"):
        if name in expect:
            assert getattr(found, name) == expect[name]
    assert expect.get("cause_has", "") in (found.cause or "")
    _hold_time(expect, found)
    _hold_history(expect, world.interpreter.history(found.arn))
    _hold_world(expect, world)


def _hold_time(expect: Mapping[str, Any], found: ExecutionDescription) -> None:
    assert found.stopped_at is not None
    seconds = (found.stopped_at - START).total_seconds()
    if "seconds" in expect:
        assert seconds == pytest.approx(expect["seconds"], abs=1e-5)
    if "seconds_between" in expect:
        low, high = expect["seconds_between"]
        assert low <= seconds <= high


def _hold_history(expect: Mapping[str, Any], events: tuple[dict[str, Any], ...]) -> None:
    kinds = [event["type"] for event in events]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    if "events" in expect:
        assert kinds == expect["events"]
    if "last_events" in expect:
        assert kinds[-len(expect["last_events"]) :] == expect["last_events"]
    if "event_count" in expect:
        assert len(kinds) == expect["event_count"]
    if "entered" in expect:
        entered = [event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("Entered")]
        assert entered == expect["entered"]


def _hold_world(expect: Mapping[str, Any], world: World) -> None:
    for name in ("calls", "put", "finished"):
        if name in expect:
            assert getattr(world, name) == expect[name]
    if "call_count" in expect:
        assert len(world.calls) == expect["call_count"]
    if "child" in expect:
        child, name, status = expect["child"]
        arn = f"arn:aws:states:local:000000000000:execution:{child}:{name}"
        assert world.interpreter.describe_execution(arn).status == status
