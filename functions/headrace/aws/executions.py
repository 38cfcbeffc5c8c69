"""The Executions port on Step Functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from headrace.aws.error_codes import code_of
from headrace.domain.errors import HeadraceError
from headrace.ports import Json

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

ERROR_CHARACTERS, CAUSE_CHARACTERS = 256, 32_768
"""Service model of Step Functions, SendTaskFailure and StopExecution."""
ANSWERED = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class ExecutionNameTaken(HeadraceError):
    """Another execution has this name already, with another input."""


class AwsExecutions:
    """The Executions port; `machines` is the ARN of the stack's state machines up to the name of each."""

    def __init__(self, client: SFNClient, machines: str) -> None:
        self._client = client
        self._machines = machines

    def start(self, machine: str, name: str, given: Mapping[str, Json]) -> str:
        """Start an execution; the same name and input again is the same execution, closed or not. Return its ARN.

        Raises ExecutionNameTaken for the same name with another input.
        """
        machine_arn = f"{self._machines}{machine}"
        try:
            started = self._client.start_execution(
                stateMachineArn=machine_arn, name=name, input=json.dumps(given, sort_keys=True)
            )
        except ClientError as error:
            if code_of(error) != "ExecutionAlreadyExists":
                raise
            return self._same(f"{machine_arn.replace(':stateMachine:', ':execution:')}:{name}", given)
        return started["executionArn"]

    def stop(self, execution_arn: str, cause: str) -> None:
        """Abort the execution; on a closed or unknown one, do nothing."""
        if self.is_running(execution_arn):
            self._client.stop_execution(executionArn=execution_arn, cause=cause[:CAUSE_CHARACTERS])

    def is_running(self, execution_arn: str) -> bool:
        """Tell whether the execution is still open; an unknown one is not."""
        try:
            return self._client.describe_execution(executionArn=execution_arn)["status"] == "RUNNING"
        except ClientError as error:
            if code_of(error) in ("ExecutionDoesNotExist", "InvalidArn"):
                return False
            raise

    def succeed(self, token: str, output: Mapping[str, Json]) -> bool:
        """Complete a waiting task. Return False when the token no longer waits."""
        return _is_taken(lambda: self._client.send_task_success(taskToken=token, output=json.dumps(output)))

    def fail(self, token: str, error: str, cause: str) -> bool:
        """Fail a waiting task, texts cut to what Step Functions takes. Return False as `succeed` does."""
        error, cause = error[:ERROR_CHARACTERS], cause[:CAUSE_CHARACTERS]
        return _is_taken(lambda: self._client.send_task_failure(taskToken=token, error=error, cause=cause))

    def heartbeat(self, token: str) -> bool:
        """Say that the waiting task is alive. Return False as `succeed` does."""
        return _is_taken(lambda: self._client.send_task_heartbeat(taskToken=token))

    def _same(self, execution_arn: str, given: Mapping[str, Json]) -> str:
        known = self._client.describe_execution(executionArn=execution_arn)
        if json.loads(known.get("input", "null")) != json.loads(json.dumps(given)):
            raise ExecutionNameTaken(
                f"{execution_arn} exists already with another input; take another name, or start it with that input"
            )
        return execution_arn


def _is_taken(send: Callable[[], object]) -> bool:
    try:
        send()
    except ClientError as error:
        if code_of(error) in ANSWERED:
            return False
        raise
    return True
