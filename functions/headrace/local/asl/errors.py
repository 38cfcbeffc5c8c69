"""What can go wrong inside a machine: a definition refused, a state that failed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from headrace.local.asl.limits import CAUSE_CHARACTERS

TIMEOUT = "States.Timeout"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
TASK_FAILED = "States.TaskFailed"
RUNTIME = "States.Runtime"
DATA_LIMIT = "States.DataLimitExceeded"
QUERY = "States.QueryEvaluationError"
ALL = "States.ALL"


class UnsupportedDefinition(ValueError):
    """A state machine uses something this interpreter does not run; the text names the machine and the place."""


class TaskError(Exception):
    """A task failed under an error name that no class can bear, such as `Lambda.ServiceException`."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


class StateFailure(Exception):
    """A state failed; a Fail state may leave out the name. `also` holds names that match without being reported."""

    def __init__(self, error: str | None, cause: str | None = None, *, also: Sequence[str] = ()) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        # Longer causes do not fit where AWS keeps them (API reference); that it cuts them is assumed.
        self.cause = None if cause is None else cause[:CAUSE_CHARACTERS]
        self.also = tuple(also)

    def output(self) -> dict[str, str]:
        """Return the Error and Cause that a Catch sees; AWS binds an empty string for an absent cause.

        Source: LocalStack's catcher, written against recorded AWS histories.
        """
        return {"Error": self.error or "", "Cause": self.cause or ""}

    def matches(self, names: Sequence[str]) -> bool:
        """Tell whether a Retry or Catch that lists `names` takes this failure."""
        return any(self._matches(name) for name in names)

    def _matches(self, name: str) -> bool:
        # States.Runtime "will always cause the execution to fail", whatever a machine lists.
        if self.error == RUNTIME:
            return False
        if name == ALL:
            return self.error != DATA_LIMIT
        if name == TASK_FAILED:
            return self.error not in (TIMEOUT, DATA_LIMIT)
        return name == self.error or name in self.also


def heartbeat_missed() -> StateFailure:
    """Return the failure of a missed heartbeat.

    AWS reports States.Timeout with no cause, and lets a Retry or Catch ask for
    States.HeartbeatTimeout. Sources: LocalStack's history recorded on AWS in 2024
    (timeouts/test_heartbeats), floci-io/floci PR 2782, aws/aws-cdk issue 16084.
    """
    return StateFailure(TIMEOUT, also=(HEARTBEAT_TIMEOUT,))


def lambda_failure(error: Exception, request_id: str) -> StateFailure:
    """Return the failure that AWS makes of an exception raised in a Python function.

    The shape of the cause is the one of a history recorded on AWS (LocalStack, test_error_output).
    """
    if isinstance(error, TaskError):
        return StateFailure(error.error, error.cause)
    name = type(error).__name__
    cause = {"errorMessage": str(error), "errorType": name, "requestId": request_id, "stackTrace": []}
    return StateFailure(name, json.dumps(cause, ensure_ascii=False, separators=(",", ":")))
