"""The facade: starting, stopping and describing executions, status events, threads, and repeatability."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from headrace.local.asl.api_errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    InvalidExecutionInput,
    InvalidName,
    InvalidOutput,
    StateMachineDoesNotExist,
    TaskTimedOut,
    ValidationException,
)
from headrace.local.interpreter import Interpreter, compile_machine
from headrace.local.loop import SimulationDeadlock
from tests.local.asl.scripted import START, World, machine

_WAIT = {"W": {"Type": "Wait", "Seconds": 10, "Output": {"ok": True}, "End": True}}
_TOKEN = {
    "T": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": "F", "Payload": {"token": "{% $states.context.Task.Token %}"}},
        "TimeoutSeconds": 600,
        "End": True,
    }
}
_BUSY = {
    "T": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": "F", "Payload": {"id": "{% $uuid() %}", "draw": "{% $random() %}"}},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "JitterStrategy": "FULL"}],
        "Next": "C",
    },
    "C": {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": "child"},
        "End": True,
    },
}


def _during(world: World, at: float, action: Callable[[], None]) -> None:
    world.loop.call_at(at, action)


def test_the_same_name_and_input_is_the_same_execution_while_it_runs() -> None:
    world = World({"main": machine(_WAIT)})
    first = world.interpreter.start_execution("main", "one", {"a": 1, "b": 2})
    assert world.interpreter.start_execution("main", "one", {"a": 1, "b": 2}) == first
    with pytest.raises(ExecutionAlreadyExists):
        world.interpreter.start_execution("main", "one", {"a": 2})
    world.loop.run_until_complete(world.interpreter.wait(first))
    assert len(world.statuses) == 2
    world.close()


def test_a_name_is_used_up_once_its_execution_is_closed() -> None:
    world = World({"main": machine(_WAIT)})
    world.run({}, "one")
    with pytest.raises(ExecutionAlreadyExists, match="Execution Already Exists"):
        world.interpreter.start_execution("main", "one", {})
    assert world.run({}, "two").status == "SUCCEEDED"
    world.close()


@pytest.mark.parametrize(
    "name", ["", "x" * 81, "two words", "a/b", "a:b", "a*b", "a\u0007b", "a#b", "[a]", "a|b", "a,b"]
)
def test_a_name_that_aws_refuses_is_refused(name: str) -> None:
    world = World({"main": machine(_WAIT)})
    with pytest.raises(InvalidName):
        world.interpreter.start_execution("main", name, {})
    world.close()


@pytest.mark.parametrize("name", ["x", "x" * 80, "run-2030.01_01", "naïve", "a=b+c@d!"])
def test_a_name_that_aws_takes_is_taken(name: str) -> None:
    world = World({"main": machine(_WAIT)})
    assert world.run({}, name).name == name
    world.close()


@pytest.mark.parametrize("given", ["x" * 262_143, {1, 2}, float("nan")])
def test_an_input_that_is_too_large_or_no_json_is_refused(given: Any) -> None:
    world = World({"main": machine(_WAIT)})
    with pytest.raises(InvalidExecutionInput):
        world.interpreter.start_execution("main", "x", given)
    assert world.run("x" * 262_142).status == "SUCCEEDED"
    world.close()


def test_what_does_not_exist_is_said_to_not_exist() -> None:
    world = World({"main": machine(_WAIT)})
    with pytest.raises(StateMachineDoesNotExist):
        world.interpreter.start_execution("other", "x", {})
    for ask in (world.interpreter.describe_execution, world.interpreter.history, world.interpreter.stop_execution):
        with pytest.raises(ExecutionDoesNotExist):
            ask("arn:aws:states:local:000000000000:execution:main:x")
    world.close()


def test_a_running_execution_is_described_with_its_state() -> None:
    world = World({"main": machine(_WAIT)})
    arn = world.interpreter.start_execution("main", "x", {"a": 1})
    world.loop.run_until_complete(asyncio.sleep(4))
    running = world.interpreter.describe_execution(arn)
    assert (running.status, running.state, running.output, running.stopped_at) == ("RUNNING", "W", None, None)
    closed = world.loop.run_until_complete(world.interpreter.wait(arn))
    assert (closed.status, closed.output, closed.machine, closed.input) == ("SUCCEEDED", {"ok": True}, "main", {"a": 1})
    assert (closed.started_at, closed.stopped_at) == (START, START + timedelta(seconds=10))
    world.close()


def test_stopping_twice_or_after_the_end_changes_nothing() -> None:
    world = World({"main": machine(_WAIT)})
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
    world = World({"main": machine(_WAIT)})
    arn = world.interpreter.start_execution("main", "x", {})
    world.interpreter.stop_execution(arn)
    world.loop.run_until_complete(world.interpreter.wait(arn))
    assert [event["type"] for event in world.interpreter.history(arn)] == ["ExecutionStarted", "ExecutionAborted"]
    world.close()


def test_error_and_cause_have_the_lengths_of_the_api() -> None:
    world = World({"main": machine(_TOKEN)}, {"F": [{"return": {}}]})
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
    world = World({"main": machine(_TOKEN)}, {"F": [{"return": {}}]})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.run_until_complete(asyncio.sleep(1))
    for output in ("x" * 262_143, {1, 2}):
        with pytest.raises(InvalidOutput):
            world.interpreter.send_task_success(world.tokens[0], output)
    world.interpreter.send_task_success(world.tokens[0], {"fine": True})
    assert world.loop.run_until_complete(world.interpreter.wait(arn)).output == {"fine": True}
    world.close()


def test_the_bus_is_told_of_the_start_and_of_success() -> None:
    world = World({"main": machine(_WAIT)})
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
        (_WAIT, 3, {"status": "TIMED_OUT"}),
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
    world = World({"main": machine(_WAIT)})
    world.run("x" * 260_000)
    detail = world.statuses[-1]["detail"]
    assert (detail["input"], detail["inputDetails"]) == (None, {"included": False})
    assert (detail["output"], detail["outputDetails"]) == (None, {"included": False})
    world.close()


def _log_of(seed: int) -> str:
    answers: list[dict[str, Any]] = [{"error": ["E", "x"]}, {"error": ["E", "x"]}, {"after": 1, "return": {}}]
    world = World({"main": machine(_BUSY), "child": machine(_WAIT)}, {"F": answers}, seed=seed)
    world.run({})
    world.close()
    return "\n".join(json.dumps(event) for event in (*world.log, *world.statuses))


def test_the_same_seed_gives_the_same_log_byte_for_byte() -> None:
    assert _log_of(1) == _log_of(1)
    assert _log_of(1) != _log_of(2)


def test_the_log_is_the_history_with_the_execution_beside_each_event() -> None:
    world = World({"main": machine(_WAIT)})
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


def test_a_function_cannot_change_the_state_it_was_given() -> None:
    world = World({"main": machine(_TOKEN)})
    seen: list[Any] = []

    async def invoke(_function: str, payload: Any) -> Any:
        payload["items"].append("changed")
        seen.append(payload)
        return payload

    async def put_events(_entries: list[dict[str, Any]]) -> dict[str, Any]:
        return {}

    states = {
        "T": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Arguments": {"FunctionName": "F", "Payload": "{% $states.input %}"},
            "Output": "{% $states.input %}",
            "End": True,
        }
    }
    given = {"items": ["as given"]}
    interpreter = Interpreter(
        {"main": compile_machine("main", machine(states))},
        invoke=invoke,
        put_events=put_events,
        loop=world.loop,
        random=Random(1),  # noqa: S311
    )
    arn = interpreter.start_execution("main", "x", given)
    assert world.loop.run_until_complete(interpreter.wait(arn)).output == {"items": ["as given"]}
    assert seen == [{"items": ["as given", "changed"]}]
    assert given == {"items": ["as given"]}
    world.close()


def test_a_fault_of_a_callback_is_raised_to_who_waits_and_fails_the_execution() -> None:
    world = World({"main": machine(_BUSY), "child": machine(_WAIT)}, {"F": [{"return": {}}]})
    world.interpreter._executions._log = _broken
    arn = world.interpreter._executions.start("main", "x", {}).arn
    with pytest.raises(ZeroDivisionError):
        world.loop.run_until_complete(world.interpreter.wait(arn))
    assert world.interpreter.describe_execution(arn).status == "FAILED"
    world.close()


def _broken(event: dict[str, Any]) -> None:
    if event["type"] == "TaskScheduled":
        raise ZeroDivisionError


def test_an_execution_may_stop_itself_from_within_a_task() -> None:
    world = World({"main": machine(_BUSY), "child": machine(_WAIT)})

    async def invoke(_function: str, _payload: Any) -> Any:
        world.interpreter.stop_execution("arn:aws:states:local:000000000000:execution:main:case", None, "from within")
        return {}

    world.interpreter._executions.engine._invoke = invoke
    found = world.run({})
    assert (found.status, found.cause) == ("ABORTED", "from within")
    assert world.interpreter.history(found.arn)[-1]["type"] == "ExecutionAborted"
    world.close()


def test_what_a_stopped_execution_was_about_to_record_is_not_in_its_history() -> None:
    world = World({"main": machine({"P": {"Type": "Pass", "End": True}})})
    arn = "arn:aws:states:local:000000000000:execution:main:case"

    def stop_on_entry(event: dict[str, Any]) -> None:
        if event["type"] == "PassStateEntered":
            world.interpreter.stop_execution(arn)

    world.interpreter._executions._log = stop_on_entry
    assert world.run({}).status == "ABORTED"
    kinds = [event["type"] for event in world.interpreter.history(arn)]
    assert kinds == ["ExecutionStarted", "PassStateEntered", "ExecutionAborted"]
    world.close()


def test_a_stop_comes_in_between_the_states_of_a_loop_that_never_waits() -> None:
    world = World({"main": machine({"C": {"Type": "Choice", "Choices": [{"Condition": True, "Next": "C"}]}})})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.call_later(0, world.interpreter.stop_execution, arn)
    assert world.loop.run_until_complete(world.interpreter.wait(arn)).status == "ABORTED"
    assert len(world.interpreter.history(arn)) < 1000
    world.close()


def test_a_closed_execution_leaves_no_timer_behind() -> None:
    world = World(
        {"main": machine(_TOKEN | {"T": _TOKEN["T"] | {"HeartbeatSeconds": 500}}, 9000)}, {"F": [{"return": {}}]}
    )
    world.loop.call_later(5, lambda: world.interpreter.send_task_success(world.tokens[0], {}))
    world.run({})
    with pytest.raises(SimulationDeadlock, match="2030-01-01T00:00:05"):
        world.loop.run_until_complete(world.loop.create_future())
    world.close()


def test_variables_together_are_held_to_ten_mebibytes() -> None:
    names = [f"v{at}" for at in range(43)]
    following = [*names[1:], "End"]
    states: dict[str, Any] = {
        name: {"Type": "Pass", "Assign": {name: "{% $pad('', 250000, 'x') %}"}, "Next": target}
        for name, target in zip(names, following, strict=True)
    }
    world = World({"main": machine({**states, "End": {"Type": "Succeed"}})})
    found = world.run({})
    assert (found.error, found.state) == ("States.DataLimitExceeded", "v41")
    world.close()


def test_ten_thousand_executions_side_by_side_each_take_their_own_time() -> None:
    states = {"W": {"Type": "Wait", "Seconds": "{% $states.input %}", "End": True}}
    world = World({"main": machine(states)})
    arns = [world.interpreter.start_execution("main", f"n{at}", at % 50) for at in range(10_000)]
    for at, arn in enumerate(arns):
        found = world.loop.run_until_complete(world.interpreter.wait(arn))
        assert found.stopped_at == START + timedelta(seconds=at % 50)
    world.close()


def test_on_a_real_loop_functions_run_in_threads_and_call_back_from_them() -> None:
    loop = asyncio.new_event_loop()
    pool = ThreadPoolExecutor(2)

    def function(payload: Any) -> Any:
        interpreter.send_task_heartbeat(payload["token"])
        interpreter.send_task_success(payload["token"], {"from": "a thread"})
        return {}

    async def invoke(_function: str, payload: Any) -> Any:
        return await loop.run_in_executor(pool, function, payload)

    async def put_events(_entries: list[dict[str, Any]]) -> dict[str, Any]:
        return {}

    interpreter = Interpreter(
        {"main": machine(_TOKEN)},
        invoke=invoke,
        put_events=put_events,
        loop=loop,
        random=Random(1),  # noqa: S311
    )
    began = time.monotonic()
    arn = interpreter.start_execution("main", "x", {})
    assert loop.run_until_complete(interpreter.wait(arn)).output == {"from": "a thread"}
    with pytest.raises(TaskTimedOut):
        _late(interpreter, arn)
    assert time.monotonic() - began < 60
    loop.run_until_complete(interpreter.shutdown())
    pool.shutdown()
    loop.close()


def _late(interpreter: Interpreter, arn: str) -> None:
    scheduled = next(event for event in interpreter.history(arn) if event["type"] == "TaskScheduled")
    parameters = json.loads(scheduled["taskScheduledEventDetails"]["parameters"])
    interpreter.send_task_success(parameters["Payload"]["token"], {})


def test_shutdown_forgets_what_is_open_and_lets_the_loop_close() -> None:
    world = World({"main": machine(_BUSY, 50), "child": machine(_WAIT)}, {"F": [{"never": True}]})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.run_until_complete(asyncio.sleep(1))
    world.loop.run_until_complete(world.interpreter.shutdown())
    assert world.interpreter.describe_execution(arn).status == "RUNNING"
    assert [event["detail"]["status"] for event in world.statuses] == ["RUNNING"]
    world.close()
