"""The facade under stress: broken callbacks, stops at odd moments, limits, threads, and shutting down."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from headrace.local.asl.api_errors import (
    TaskTimedOut,
)
from headrace.local.interpreter import Interpreter, compile_machine
from headrace.local.loop import SimulationDeadlock
from tests.local.asl.samples import BUSY, TOKEN, WAIT
from tests.local.asl.scripted import START, World, machine


def test_a_function_cannot_change_the_state_it_was_given() -> None:
    world = World({"main": machine(TOKEN)})
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
    world = World({"main": machine(BUSY), "child": machine(WAIT)}, {"F": [{"return": {}}]})
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
    world = World({"main": machine(BUSY), "child": machine(WAIT)})

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
        {"main": machine(TOKEN | {"T": TOKEN["T"] | {"HeartbeatSeconds": 500}}, 9000)}, {"F": [{"return": {}}]}
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
        {"main": machine(TOKEN)},
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
    world = World({"main": machine(BUSY, 50), "child": machine(WAIT)}, {"F": [{"never": True}]})
    arn = world.interpreter.start_execution("main", "x", {})
    world.loop.run_until_complete(asyncio.sleep(1))
    world.loop.run_until_complete(world.interpreter.shutdown())
    assert world.interpreter.describe_execution(arn).status == "RUNNING"
    assert [event["detail"]["status"] for event in world.statuses] == ["RUNNING"]
    world.close()
