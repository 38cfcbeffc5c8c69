"""The Executions port over the interpreter; every method may be called from any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.local.asl.api_errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    InvalidToken,
    TaskDoesNotExist,
    TaskTimedOut,
)
from headrace.local.asl.arns import execution_arn
from headrace.local.asl.limits import CAUSE_CHARACTERS, ERROR_CHARACTERS
from headrace.local.interpreter import Interpreter
from headrace.ports import Json


class LocalExecutions:
    """The Executions port on one machine; executions live as long as the interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def start(self, machine: str, name: str, given: Mapping[str, Json]) -> str:
        """Start an execution; the same name and input again is the same execution, closed or not. Return its ARN.

        Raises ExecutionAlreadyExists for the same name with another input.
        """
        try:
            return self._interpreter.start_execution(machine, name, dict(given))
        except ExecutionAlreadyExists:
            known = self._interpreter.describe_execution(execution_arn(machine, name))
            if known.input != dict(given):
                raise
            return known.arn

    def stop(self, execution_arn: str, cause: str) -> None:
        """Abort the execution; on a closed or unknown one, do nothing."""
        try:
            self._interpreter.stop_execution(execution_arn, cause=cause[:CAUSE_CHARACTERS])
        except ExecutionDoesNotExist:
            return

    def is_running(self, execution_arn: str) -> bool:
        """Tell whether the execution is still open; an unknown one is not."""
        try:
            return self._interpreter.describe_execution(execution_arn).status == "RUNNING"
        except ExecutionDoesNotExist:
            return False

    def succeed(self, token: str, output: Mapping[str, Json]) -> bool:
        """Complete a waiting task. Return False when the token no longer waits."""
        return _is_taken(lambda: self._interpreter.send_task_success(token, dict(output)))

    def fail(self, token: str, error: str, cause: str) -> bool:
        """Fail a waiting task, texts cut to what Step Functions takes. Return False as `succeed` does."""
        error, cause = error[:ERROR_CHARACTERS], cause[:CAUSE_CHARACTERS]
        return _is_taken(lambda: self._interpreter.send_task_failure(token, error, cause))

    def heartbeat(self, token: str) -> bool:
        """Say that the waiting task is alive. Return False as `succeed` does."""
        return _is_taken(lambda: self._interpreter.send_task_heartbeat(token))


def _is_taken(send: Callable[[], None]) -> bool:
    try:
        send()
    except (TaskTimedOut, TaskDoesNotExist, InvalidToken):
        return False
    return True
