"""Every execution of one interpreter: started, timed out, stopped, closed, and told to the bus."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any

from headrace.local.asl.api_errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    InvalidExecutionInput,
    InvalidName,
    StateMachineDoesNotExist,
    ValidationException,
)
from headrace.local.asl.arns import execution_arn
from headrace.local.asl.definition import Machine
from headrace.local.asl.engine import Engine, Invoke, PutEvents
from headrace.local.asl.errors import RUNTIME, StateFailure
from headrace.local.asl.history import Event, History
from headrace.local.asl.limits import CAUSE_CHARACTERS, ERROR_CHARACTERS, NAME_CHARACTERS, PAYLOAD_BYTES
from headrace.local.asl.payloads import size_bytes
from headrace.local.asl.record import Execution, Status
from headrace.local.asl.reports import status_event
from headrace.local.asl.running import run_to_end

Json = Any
# White space, brackets, wildcards, special and control characters (API reference, StartExecution).
_FORBIDDEN_IN_NAMES = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")


class Executions:
    """The executions by ARN; every method is called on the loop, except before it runs."""

    def __init__(
        self,
        *,
        machines: Mapping[str, Machine],
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], datetime],
        source: Random,
        invoke: Invoke,
        put_events: PutEvents,
        on_status: Callable[[dict[str, Json]], None] | None,
        log: Callable[[Event], None] | None,
    ) -> None:
        self.engine = Engine(loop=loop, now=now, source=source, invoke=invoke, put_events=put_events, children=self)
        self._machines = machines
        self._on_status = on_status
        self._log = log
        self._by_arn: dict[str, Execution] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._deadlines: dict[str, asyncio.TimerHandle] = {}

    def find(self, arn: str) -> Execution:
        """Return the execution. Raises ExecutionDoesNotExist."""
        if arn not in self._by_arn:
            raise ExecutionDoesNotExist(f"Execution Does Not Exist: '{arn}'")
        return self._by_arn[arn]

    def start(self, machine: str, name: str, given: Json) -> Execution:
        """Start an execution, or return the open one of the same name and input.

        Raises StateMachineDoesNotExist, InvalidName, InvalidExecutionInput, ExecutionAlreadyExists.
        """
        if machine not in self._machines:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{machine}'")
        if not 1 <= len(name) <= NAME_CHARACTERS or _FORBIDDEN_IN_NAMES.search(name):
            raise InvalidName(f"Invalid Name: '{name}'")
        execution = self._new(self._machines[machine], name, given)
        known = self._by_arn.get(execution.arn)
        if known is None:
            return self._launch(execution)
        if known.running and known.input_text == execution.input_text:
            return known
        raise ExecutionAlreadyExists(f"Execution Already Exists: '{execution.arn}'")

    def stop(self, arn: str, error: str | None, cause: str | None) -> None:
        """Abort the execution, running no Catch; a closed one stays as it is.

        Raises ExecutionDoesNotExist, ValidationException.
        """
        if len(error or "") > ERROR_CHARACTERS or len(cause or "") > CAUSE_CHARACTERS:
            raise ValidationException(f"error is at most {ERROR_CHARACTERS}, cause {CAUSE_CHARACTERS} characters")
        execution = self.find(arn)
        self._end_from_outside(execution, "ABORTED", error, cause)

    def start_child(self, machine: str, name: str | None, given: Json) -> Execution:
        """Start a nested execution; a name of None is drawn. Raises what `start` raises."""
        return self.start(machine, self.engine.new_id() if name is None else name, given)

    def stop_child(self, child: Execution, cause: str) -> None:
        """Abort a nested execution unless it is closed."""
        self._end_from_outside(child, "ABORTED", None, cause)

    async def shutdown(self) -> None:
        """Forget every open execution and call, without an event; for the end of a program."""
        left = [*self._running.values(), *self.engine.calls()]
        for deadline in self._deadlines.values():
            deadline.cancel()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def closed(self, arn: str) -> Execution:
        """Wait until the execution is closed. Raises ExecutionDoesNotExist, and a fault of a callback."""
        execution = self.find(arn)
        task = self._running.get(arn)
        if task is not None:
            await asyncio.wait({task})
        if task is not None and not task.cancelled():
            await task
        return execution

    def _new(self, machine: Machine, name: str, given: Json) -> Execution:
        arn = execution_arn(machine.name, name)
        history = History(arn, self.engine.now, self._log)
        try:
            execution = Execution(machine, name, given, history, self.engine.now())
        except (TypeError, ValueError) as error:
            raise InvalidExecutionInput(f"Invalid Execution Input: {error}") from error
        if size_bytes(execution.input_text) > PAYLOAD_BYTES:
            raise InvalidExecutionInput(f"Invalid Execution Input: larger than {PAYLOAD_BYTES} bytes")
        return execution

    def _launch(self, execution: Execution) -> Execution:
        loop, limit = self.engine.loop, execution.machine.timeout_seconds
        self._by_arn[execution.arn] = execution
        details = {"input": execution.input_text, "inputDetails": {"truncated": False}}
        execution.history.add("ExecutionStarted", details)
        if limit is not None:
            self._deadlines[execution.arn] = loop.call_later(limit, self._time_out, execution)
        task = loop.create_task(self._run(execution))
        self._running[execution.arn] = task
        task.add_done_callback(lambda _task: self._running.pop(execution.arn, None))
        self._tell(execution)
        return execution

    async def _run(self, execution: Execution) -> None:
        try:
            output = await run_to_end(self.engine, execution)
        except StateFailure as failure:
            self._close(execution, "FAILED", failure.error, failure.cause)
        except Exception as fault:
            # A fault of ours or of a callback; a parent must not wait for ever, and `closed` raises it.
            self._close(execution, "FAILED", RUNTIME, repr(fault))
            raise
        else:
            execution.output, execution.output_text = output
            self._close(execution, "SUCCEEDED", None, None)

    def _time_out(self, execution: Execution) -> None:
        self._end_from_outside(execution, "TIMED_OUT", None, None)

    def _end_from_outside(self, execution: Execution, status: Status, error: str | None, cause: str | None) -> None:
        if execution.running:
            self._running[execution.arn].cancel()
        self._close(execution, status, error, cause)

    def _close(self, execution: Execution, status: Status, error: str | None, cause: str | None) -> None:
        if not execution.running:
            return
        deadline = self._deadlines.pop(execution.arn, None)
        if deadline is not None:
            deadline.cancel()
        execution.close(status, error, cause, self.engine.now())
        self._tell(execution)

    def _tell(self, execution: Execution) -> None:
        if self._on_status is not None:
            self._on_status(status_event(execution, self.engine.new_id(), self.engine.now()))
