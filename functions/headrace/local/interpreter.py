"""Runs the state machines of this project on one machine, as AWS Step Functions runs Standard workflows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar

from headrace.local.asl.definition import Machine
from headrace.local.asl.engine import Invoke, PutEvents
from headrace.local.asl.errors import TaskError, UnsupportedDefinition
from headrace.local.asl.executions import Executions
from headrace.local.asl.history import Event
from headrace.local.asl.loading import compile_machine, load_machine
from headrace.local.asl.record import ExecutionDescription
from headrace.local.loop import LoopClock

__all__ = [
    "ExecutionDescription",
    "Interpreter",
    "Machine",
    "TaskError",
    "UnsupportedDefinition",
    "compile_machine",
    "load_machine",
]

Json = Any
_T = TypeVar("_T")


class Interpreter:
    """Step Functions for a set of machines on one event loop.

    `machines` maps names to parsed definitions or to machines already compiled, which saves time
    when many interpreters run the same ones. `invoke` is given a function's name and a payload of
    its own; an exception it raises fails the task under the name of its class (TaskError names
    any other). `put_events` is given entries as EventBridge PutEvents takes them, `Detail` being
    text. `on_status` is called, on the loop, with each event "Step Functions Execution Status
    Change"; `log` with each history event and its `executionArn`. Every draw, including ids and
    tokens, is from `random`, so one seed gives one log.

    Methods may be called from the loop, from other threads while it runs, or before it runs.
    Construction raises UnsupportedDefinition for what the interpreter does not run.
    """

    def __init__(
        self,
        machines: Mapping[str, Mapping[str, Json] | Machine],
        *,
        invoke: Invoke,
        put_events: PutEvents,
        loop: asyncio.AbstractEventLoop,
        random: Random,
        on_status: Callable[[dict[str, Json]], None] | None = None,
        log: Callable[[Event], None] | None = None,
    ) -> None:
        compiled = {
            name: machine if isinstance(machine, Machine) else compile_machine(name, machine)
            for name, machine in machines.items()
        }
        self._loop = loop
        self._executions = Executions(
            machines=compiled,
            loop=loop,
            now=LoopClock(loop).now,
            source=random,
            invoke=invoke,
            put_events=put_events,
            on_status=on_status,
            log=log,
        )

    def start_execution(self, machine: str, name: str, given: Json) -> str:
        """Start an execution and return its ARN; the open one of that name and input is the same execution.

        Raises ExecutionAlreadyExists for a name used before (closed, or with another input),
        StateMachineDoesNotExist, InvalidName, InvalidExecutionInput.
        """
        return self._on_loop(lambda: self._executions.start(machine, name, given).arn)

    def stop_execution(self, arn: str, error: str | None = None, cause: str | None = None) -> None:
        """Abort an execution and the children it waits for; no Catch runs; a closed one stays as it is.

        Raises ExecutionDoesNotExist, ValidationException.
        """
        self._on_loop(lambda: self._executions.stop(arn, error, cause))

    def send_task_success(self, token: str, output: Json) -> None:
        """Complete the waiting task. Raises TaskTimedOut, TaskDoesNotExist, InvalidToken, InvalidOutput."""
        self._on_loop(lambda: self._executions.engine.tokens.succeed(token, output))

    def send_task_failure(self, token: str, error: str, cause: str) -> None:
        """Fail the waiting task. Raises TaskTimedOut, TaskDoesNotExist, InvalidToken, ValidationException."""
        self._on_loop(lambda: self._executions.engine.tokens.fail(token, error, cause))

    def send_task_heartbeat(self, token: str) -> None:
        """Start the task's heartbeat interval again. Raises TaskTimedOut, TaskDoesNotExist, InvalidToken."""
        self._on_loop(lambda: self._executions.engine.tokens.beat(token))

    def describe_execution(self, arn: str) -> ExecutionDescription:
        """Return the execution as it stands now. Raises ExecutionDoesNotExist."""
        return self._on_loop(lambda: self._executions.find(arn).describe())

    def history(self, arn: str) -> tuple[Event, ...]:
        """Return the history so far, in the shapes of GetExecutionHistory. Raises ExecutionDoesNotExist."""
        return self._on_loop(lambda: tuple(self._executions.find(arn).history.events))

    async def wait(self, arn: str) -> ExecutionDescription:
        """Return the description once the execution is closed. Raises ExecutionDoesNotExist."""
        return (await self._executions.closed(arn)).describe()

    async def shutdown(self) -> None:
        """Forget open executions and running calls, without events, so that the loop can be closed."""
        await self._executions.shutdown()

    def _on_loop(self, action: Callable[[], _T]) -> _T:
        if not self._loop.is_running() or _running_loop() is self._loop:
            return action()

        async def act() -> _T:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
