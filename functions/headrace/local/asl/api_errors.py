"""What the Step Functions API answers to a call that it refuses, under its own names."""

from __future__ import annotations


class ExecutionAlreadyExists(Exception):
    """The name was used before, by a closed execution or with another input."""


class ExecutionDoesNotExist(Exception):
    """No execution has this ARN."""


class StateMachineDoesNotExist(Exception):
    """No state machine has this name."""


class InvalidName(Exception):
    """An execution name is empty, too long or holds a character that AWS refuses."""


class InvalidExecutionInput(Exception):
    """The input is not JSON, or is larger than Step Functions takes."""


class InvalidOutput(Exception):
    """The output sent with a token is not JSON, or is larger than Step Functions takes."""


class InvalidToken(Exception):
    """The text is no task token at all."""


class TaskDoesNotExist(Exception):
    """The token has the right form and was never given out."""


class TaskTimedOut(Exception):
    """The task of this token is over: completed before, timed out, or its execution ended.

    AWS gives one answer for all three (aws-samples/amazon-mwaa-examples issue 61).
    """

    def __init__(self) -> None:
        super().__init__("Task Timed Out: 'Provided task does not exist anymore'")


class ValidationException(Exception):
    """A parameter of a call is outside what the API takes."""
