"""The facade: starting, stopping and describing executions, status events, threads, and repeatability."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.local.asl.api_errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    InvalidExecutionInput,
    InvalidName,
    InvalidOutput,
    StateMachineDoesNotExist,
    ValidationException,
)
from tests.local.asl.samples import BUSY, TOKEN, WAIT
from tests.local.asl.scripted import START, World, machine


def _during(world: World, at: float, action: Callable[[], None]) -> None:
    world.loop.call_at(at, action)


def test_the_same_name_and_input_is_the_same_execution_while_it_runs() -> None:
    world = World({"main": machine(WAIT)})
    first = world.interpreter.start_execution("main", "one", {"a": 1, "b": 2})
    assert world.interpreter.start_execution("main", "one", {"a": 1, "b": 2}) == first
    with pytest.raises(ExecutionAlreadyExists):
        world.interpreter.start_execution("main", "one", {"a": 2})
    world.loop.run_until_complete(world.interpreter.wait(first))
    assert len(world.statuses) == 2
    world.close()


def test_a_name_is_used_up_once_its_execution_is_closed() -> None:
    world = World({"main": machine(WAIT)})
    world.run({}, "one")
    with pytest.raises(ExecutionAlreadyExists, match="Execution Already Exists"):
        world.interpreter.start_execution("main", "one", {})
    assert world.run({}, "two").status == "SUCCEEDED"
    world.close()


@pytest.mark.parametrize(
    "name", ["", "x" * 81, "two words", "a/b", "a:b", "a*b", "a\u0007b", "a#b", "[a]", "a|b", "a,b"]
)
def test_a_name_that_aws_refuses_is_refused(name: str) -> None:
    world = World({"main": machine(WAIT)})
    with pytest.raises(InvalidName):
        world.interpreter.start_execution("main", name, {})
    world.close()


@pytest.mark.parametrize("name", ["x", "x" * 80, "run-2030.01_01", "naïve", "a=b+c@d!"])
def test_a_name_that_aws_takes_is_taken(name: str) -> None:
    world = World({"main": machine(WAIT)})
    assert world.run({}, name).name == name
    world.close()


@pytest.mark.parametrize("given", ["x" * 262_143, {1, 2}, float("nan")])
def test_an_input_that_is_too_large_or_no_json_is_refused(given: Any) -> None:
    world = World({"main": machine(WAIT)})
    with pytest.raises(InvalidExecutionInput):
        world.interpreter.start_execution("main", "x", given)
    assert world.run("x" * 262_142).status == "SUCCEEDED"
    world.close()


def test_what_does_not_exist_is_said_to_not_exist() -> None:
    world = World({"main": machine(WAIT)})
    with pytest.raises(StateMachineDoesNotExist):
        world.interpreter.start_execution("other", "x", {})
    for ask in (world.interpreter.describe_execution, world.interpreter.history, world.interpreter.stop_execution):
        with pytest.raises(ExecutionDoesNotExist):
            ask("arn:aws:states:local:000000000000:execution:main:x")
    world.close()


def test_a_running_execution_is_described_with_its_state() -> None:
    world = World({"main": machine(WAIT)})
    arn = world.interpreter.start_execution("main", "x", {"a": 1})
    world.loop.run_until_complete(asyncio.sleep(4))
    running = world.interpreter.describe_execution(arn)
    assert (running.status, running.state, running.output, running.stopped_at) == ("RUNNING", "W", None, None)
    closed = world.loop.run_until_complete(world.interpreter.wait(arn))
    assert (closed.status, closed.output, closed.machine, closed.input) == ("SUCCEEDED", {"ok": True}, "main", {"a": 1})
    assert (closed.started_at, closed.stopped_at) == (START, START + timedelta(seconds=10))
    world.close()


def test_stopping_twice_or_after_the_end_changes_nothing() -> None:
    world = World({"main": machine(WAIT)})
    arn = world.interpreter.start_execution("main", "x", {})
    _during(world, 3, lambda: world.interpreter.stop_execution(arn, "First", "why"))
    _during(world, 4, lambda: world.interpreter.stop_execution(arn, "Second", "why not"))
    stopped = world.loop.run_until_complete(world.interpreter.wait(arn))
    world.loop.run_until_complete(asyncio.sleep(5))
    assert world.interpreter.describe_execution(arn) == stopped
    assert (stopped.status, stopped.error, stopped.cause) == ("ABORTED", "First", "why")
    assert [event["detail"]["status"] for event in world.statuses] == ["RUNNING", "ABORTED"]
    world.close()


def test_an_execution_stopped_before_its_first_state_never_enters_it() -> None:
    world = World({"main": machine(WAIT)})
    arn = world.interpreter.start_execution("main", "x", {})
    world.interpreter.stop_execution(arn)
    world.loop.run_until_complete(world.interpreter.wait(arn))
    assert [event["type"] for event in world.interpreter.history(arn)] == ["ExecutionStarted", "ExecutionAborted"]
    world.close()


def test_error_and_cause_have_the_lengths_of_the_api() -> None:
    world = World({"main": machine(TOKEN)}, {"F": [{"return": {}}]})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.run_until_complete(asyncio.sleep(1))
    for error, cause in (("e" * 257, "c"), ("e", "c" * 32_769)):
        with pytest.raises(ValidationException):
            world.interpreter.stop_execution(arn, error, cause)
        with pytest.raises(ValidationException):
            world.interpreter.send_task_failure(world.tokens[0], error, cause)
    assert world.interpreter.describe_execution(arn).status == "RUNNING"
    world.close()


def test_an_output_for_a_token_must_be_json_of_bounded_size() -> None:
    world = World({"main": machine(TOKEN)}, {"F": [{"return": {}}]})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.run_until_complete(asyncio.sleep(1))
    for output in ("x" * 262_143, {1, 2}):
        with pytest.raises(InvalidOutput):
            world.interpreter.send_task_success(world.tokens[0], output)
    world.interpreter.send_task_success(world.tokens[0], {"fine": True})
    assert world.loop.run_until_complete(world.interpreter.wait(arn)).output == {"fine": True}
    world.close()


def test_the_bus_is_told_of_the_start_and_of_success() -> None:
    world = World({"main": machine(WAIT)})
    arn = world.run({"a": 1}).arn
    started, ended = world.statuses
    assert started["source"] == "aws.states"
    assert started["detail-type"] == "Step Functions Execution Status Change"
    assert (started["time"], ended["time"]) == ("2030-01-01T00:00:00.000Z", "2030-01-01T00:00:10.000Z")
    assert ended["resources"] == [arn]
    assert started["detail"] == {
        "executionArn": arn,
        "stateMachineArn": "arn:aws:states:local:000000000000:stateMachine:main",
        "name": "case",
        "status": "RUNNING",
        "startDate": 1_893_456_000_000,
        "stopDate": None,
        "input": '{"a":1}',
        "inputDetails": {"included": True},
        "output": None,
        "outputDetails": None,
    }
    assert ended["detail"] == started["detail"] | {
        "status": "SUCCEEDED",
        "stopDate": 1_893_456_010_000,
        "output": '{"ok":true}',
        "outputDetails": {"included": True},
    }
    world.close()


@pytest.mark.parametrize(
    ("states", "limit", "told"),
    [
        ({"F": {"Type": "Fail", "Error": "E", "Cause": "c"}}, None, {"status": "FAILED", "error": "E", "cause": "c"}),
        ({"F": {"Type": "Fail"}}, None, {"status": "FAILED"}),
        (WAIT, 3, {"status": "TIMED_OUT"}),
    ],
)
def test_error_and_cause_are_told_only_where_there_are_any(
    states: dict[str, Any], limit: int | None, told: dict[str, str]
) -> None:
    world = World({"main": machine(states, limit)})
    world.run({})
    detail = world.statuses[-1]["detail"]
    assert {name: detail[name] for name in ("status", "error", "cause") if name in detail} == told
    world.close()


def test_an_event_leaves_out_what_eventbridge_could_not_carry() -> None:
    world = World({"main": machine(WAIT)})
    world.run("x" * 260_000)
    detail = world.statuses[-1]["detail"]
    assert (detail["input"], detail["inputDetails"]) == (None, {"included": False})
    assert (detail["output"], detail["outputDetails"]) == (None, {"included": False})
    world.close()


def _log_of(seed: int) -> str:
    answers: list[dict[str, Any]] = [{"error": ["E", "x"]}, {"error": ["E", "x"]}, {"after": 1, "return": {}}]
    world = World({"main": machine(BUSY), "child": machine(WAIT)}, {"F": answers}, seed=seed)
    world.run({})
    world.close()
    return "\n".join(json.dumps(event) for event in (*world.log, *world.statuses))


def test_the_same_seed_gives_the_same_log_byte_for_byte() -> None:
    assert _log_of(1) == _log_of(1)
    assert _log_of(1) != _log_of(2)


def test_the_log_is_the_history_with_the_execution_beside_each_event() -> None:
    world = World({"main": machine(WAIT)})
    arn = world.run({}).arn
    assert world.log == [{"executionArn": arn, **event} for event in world.interpreter.history(arn)]
    exited = world.interpreter.history(arn)[2]
    assert exited == {
        "id": 3,
        "previousEventId": 2,
        "timestamp": "2030-01-01T00:00:10.000Z",
        "type": "WaitStateExited",
        "stateExitedEventDetails": {"name": "W", "output": '{"ok":true}', "outputDetails": {"truncated": False}},
    }
    world.close()
