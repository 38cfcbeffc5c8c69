"""The four integrations: what each asks of the outside, and the result or failure AWS makes of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any

from headrace.local.asl.api_errors import (
    ExecutionAlreadyExists,
    InvalidExecutionInput,
    InvalidName,
    StateMachineDoesNotExist,
)
from headrace.local.asl.arns import REGION, machine_arn
from headrace.local.asl.definition import INVOKE_AND_WAIT, PUT_EVENTS, START_EXECUTION, Task
from headrace.local.asl.engine import Engine
from headrace.local.asl.errors import RUNTIME, TASK_FAILED, StateFailure, lambda_failure
from headrace.local.asl.payloads import check_size, encode, encode_payload, read_back, text_of
from headrace.local.asl.record import Execution
from headrace.local.asl.reports import sync_result
from headrace.local.asl.tokens import Waiting
from headrace.local.asl.visit import Payload

Json = Any


class Attempt:
    """One attempt of one Task state: its history events and its call."""

    def __init__(self, engine: Engine, execution: Execution, task: Task, waiting: Waiting | None) -> None:
        self._engine = engine
        self._execution = execution
        self._task = task
        self._waiting = waiting
        self._names = _names_of(task.resource)

    async def run(
        self, arguments: Mapping[str, Json], limit_seconds: float, heartbeat_seconds: float | None
    ) -> Payload:
        """Do the task and return its result. Raises StateFailure, whatever went wrong."""
        self._schedule(arguments, limit_seconds, heartbeat_seconds)
        try:
            async with asyncio.timeout(limit_seconds):
                result = await self._call(arguments)
            self._measure(result.text)
        except TimeoutError:
            self._record("TaskTimedOut", error="States.Timeout")
            raise StateFailure("States.Timeout") from None
        except StateFailure as failure:
            self._record_failure(failure)
            raise
        self._record("TaskSucceeded", output=result.text, outputDetails={"truncated": False})
        return result

    def _schedule(self, arguments: Mapping[str, Json], timeout: float, heartbeat: float | None) -> None:
        text = encode_payload(arguments, f"The state/task '{self._task.resource}' was given arguments")
        limits = {"timeoutInSeconds": timeout, "heartbeatInSeconds": heartbeat}
        given = {name: seconds for name, seconds in limits.items() if seconds is not None}
        self._record("TaskScheduled", parameters=text, region=REGION, **given)
        self._record("TaskStarted")
        if self._waiting is not None and heartbeat is not None:
            self._waiting.expect_heartbeats(heartbeat)

    async def _call(self, arguments: Mapping[str, Json]) -> Payload:
        if self._task.resource == START_EXECUTION:
            return await self._start_execution(arguments)
        if self._task.resource == PUT_EVENTS:
            return await self._put_events(arguments)
        result = await self._invoke(arguments)
        if self._task.resource != INVOKE_AND_WAIT:
            return result
        self._submitted(result.text)
        return await self._answer()

    async def _invoke(self, arguments: Mapping[str, Json]) -> Payload:
        function = _last_part(arguments.get("FunctionName"), ":function:")
        call = self._engine.call(function, read_back(arguments.get("Payload", {})))
        await self._first_of(call)
        try:
            result = await asyncio.shield(call)
        except Exception as error:
            raise lambda_failure(error, self._engine.new_id()) from error
        answer = _marshalled(result)
        text = f'{{"ExecutedVersion":"$LATEST","Payload":{answer.text},"StatusCode":200}}'
        return Payload({"ExecutedVersion": "$LATEST", "Payload": answer.value, "StatusCode": 200}, text)

    async def _first_of(self, call: asyncio.Future[Json]) -> None:
        """Wait for the function, or for a failure that the token brings before the function returned."""
        if self._waiting is None:
            return
        await asyncio.wait({call, self._waiting.answer}, return_when=asyncio.FIRST_COMPLETED)
        if self._waiting.answer.done() and isinstance(self._waiting.answer.result(), StateFailure):
            raise self._waiting.answer.result()

    async def _answer(self) -> Payload:
        assert self._waiting is not None  # noqa: S101 - only a waiting task gets here
        answer = await self._waiting.answer
        if isinstance(answer, StateFailure):
            raise answer
        return Payload(read_back(answer), text_of(answer))

    async def _start_execution(self, arguments: Mapping[str, Json]) -> Payload:
        child = self._start_child(arguments)
        started = round(child.started_at.timestamp() * 1000)
        self._submitted(text_of({"ExecutionArn": child.arn, "StartDate": started}))
        try:
            await child.closed.wait()
        finally:
            # Whatever ends the wait ends the child; AWS was seen to do so on time-out and stop
            # (floci-io/floci, AslExecutorNestedSyncTimeoutTest).
            self._engine.children.stop_child(
                child,
                f"The Task state in AWS Step Functions execution [{self._execution.arn}] which was managing "
                "this resource was aborted",
            )
        result = sync_result(child)
        text = text_of(result)
        if child.status != "SUCCEEDED":
            raise StateFailure(TASK_FAILED, text)
        return Payload(read_back(result), text)

    def _start_child(self, arguments: Mapping[str, Json]) -> Execution:
        machine = _last_part(arguments.get("StateMachineArn"), ":stateMachine:")
        try:
            return self._engine.children.start_child(machine, arguments.get("Name"), arguments.get("Input", {}))
        except (ExecutionAlreadyExists, StateMachineDoesNotExist, InvalidName, InvalidExecutionInput) as error:
            name = type(error).__name__
            cause = f"{error} (Service: AWSStepFunctions; Status Code: 400; Error Code: {name})"
            raise StateFailure(f"StepFunctions.{name}Exception", cause) from error

    async def _put_events(self, arguments: Mapping[str, Json]) -> Payload:
        entries = arguments.get("Entries")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise StateFailure(RUNTIME, "The argument Entries must be a list of objects")
        try:
            result = await asyncio.shield(self._engine.publish([self._entry(entry) for entry in entries]))
        except Exception as error:
            raise StateFailure(f"EventBridge.{type(error).__name__}", str(error)) from error
        if result.get("FailedEntryCount"):
            raise StateFailure("EventBridge.FailedEntry", encode(result))
        return _marshalled(result)

    def _entry(self, entry: Mapping[str, Json]) -> dict[str, Json]:
        """Return the entry as PutEvents takes it: Detail as text, and the ARNs that Step Functions adds."""
        detail = entry.get("Detail", {})
        added = [self._execution.arn, machine_arn(self._execution.machine.name)]
        return {
            **entry,
            "Detail": detail if isinstance(detail, str) else encode(detail),
            "Resources": [*entry.get("Resources", []), *added],
        }

    def _submitted(self, text: str) -> None:
        self._measure(text)
        self._record("TaskSubmitted", output=text, outputDetails={"truncated": False})

    def _measure(self, text: str) -> None:
        check_size(text, f"The state/task '{self._task.resource}' returned a result")

    def _record_failure(self, failure: StateFailure) -> None:
        kind = "TaskTimedOut" if failure.error == "States.Timeout" and failure.cause is None else "TaskFailed"
        self._record(kind, error=failure.error, **({} if failure.cause is None else {"cause": failure.cause}))

    def _record(self, kind: str, **details: Json) -> None:
        self._execution.history.add(kind, details, names=self._names)


@cache
def _names_of(resource: str) -> Mapping[str, str]:
    service, action = resource.removeprefix("arn:aws:states:::").split(":", 1)
    return {"resourceType": service, "resource": action}


def _last_part(value: Json, separator: str) -> str:
    """Return the name in an ARN, or the value itself when it is a plain name."""
    if not isinstance(value, str) or not value:
        raise StateFailure(RUNTIME, f"The value {value!r} names nothing that could be called")
    return value.rsplit(separator, 1)[-1]


def _marshalled(result: Json) -> Payload:
    """Return the result as it crosses the network."""
    try:
        return Payload(read_back(result), encode(result))
    except (TypeError, ValueError) as error:
        raise StateFailure("Runtime.MarshalError", f"Unable to marshal response: {error}") from error
