"""The record of one execution, and what DescribeExecution tells of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from headrace.local.asl.arns import execution_arn
from headrace.local.asl.definition import Machine
from headrace.local.asl.errors import TIMEOUT
from headrace.local.asl.history import History, timestamp
from headrace.local.asl.payloads import encode

Json = Any
Status = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]


@dataclass(frozen=True)
class ExecutionDescription:
    """What DescribeExecution tells, with input and output as JSON values, and the state it is in."""

    arn: str
    machine: str
    name: str
    status: Status
    input: Json
    output: Json
    """None until the execution succeeded."""
    error: str | None
    cause: str | None
    started_at: datetime
    stopped_at: datetime | None
    state: str | None
    """Name of the state entered last; None before the first."""


class Execution:
    """The mutable record of one execution; only the interpreter's loop touches it."""

    def __init__(self, machine: Machine, name: str, given: Json, history: History, started_at: datetime) -> None:
        self.arn = execution_arn(machine.name, name)
        self.machine = machine
        self.name = name
        self.input = given
        self.input_text = encode(given)
        self.history = history
        self.started_at = started_at
        self.stopped_at: datetime | None = None
        self.status: Status = "RUNNING"
        self.output: Json = None
        self.output_text: str | None = None
        self.error: str | None = None
        self.cause: str | None = None
        self.state: str | None = None
        self.context = {
            "Id": self.arn,
            "Input": given,
            "Name": name,
            "StartTime": timestamp(started_at),
            "RedriveCount": 0,
        }
        self.variables: dict[str, Json] = {}
        self.variable_bytes: dict[str, int] = {}
        self.closed: asyncio.Event = asyncio.Event()

    @property
    def running(self) -> bool:
        """Tell whether the execution is open."""
        return self.status == "RUNNING"

    def close(self, status: Status, error: str | None, cause: str | None, now: datetime) -> None:
        """Record the end; the output, if any, is set already."""
        self.status, self.error, self.cause, self.stopped_at = status, error, cause, now
        details: dict[str, Json] = {"error": error, "cause": cause}
        if status == "SUCCEEDED":
            details = {"output": self.output_text, "outputDetails": {"truncated": False}}
        elif status == "TIMED_OUT":
            # The name is in the history only: the execution itself has no error on AWS.
            details = {"error": TIMEOUT}
        kind = "".join(word.capitalize() for word in status.split("_"))
        self.history.add(f"Execution{kind}", {name: value for name, value in details.items() if value is not None})
        self.closed.set()

    def describe(self) -> ExecutionDescription:
        """Return the record as it stands now."""
        return ExecutionDescription(
            arn=self.arn,
            machine=self.machine.name,
            name=self.name,
            status=self.status,
            input=self.input,
            output=self.output,
            error=self.error,
            cause=self.cause,
            started_at=self.started_at,
            stopped_at=self.stopped_at,
            state=self.state,
        )
