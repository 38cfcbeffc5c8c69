"""A state machine after loading: every field checked, every expression compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from headrace.local.asl.expressions import Expression
from headrace.local.asl.templates import Template

Integration = Literal[
    "arn:aws:states:::lambda:invoke",
    "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "arn:aws:states:::states:startExecution.sync:2",
    "arn:aws:states:::events:putEvents",
]
INVOKE: Integration = "arn:aws:states:::lambda:invoke"
INVOKE_AND_WAIT: Integration = "arn:aws:states:::lambda:invoke.waitForTaskToken"
START_EXECUTION: Integration = "arn:aws:states:::states:startExecution.sync:2"
PUT_EVENTS: Integration = "arn:aws:states:::events:putEvents"
INTEGRATIONS: list[Integration] = [INVOKE, INVOKE_AND_WAIT, START_EXECUTION, PUT_EVENTS]

Seconds = float | Expression


@dataclass(frozen=True)
class Outcome:
    """What a state, a rule or a catcher leaves behind: an output (None keeps the default) and variables."""

    output: Template | None
    assign: Mapping[str, Template]


@dataclass(frozen=True)
class Retrier:
    """One entry of Retry; intervals are seconds, `max_delay` None is no cap."""

    errors: tuple[str, ...]
    interval: float
    max_attempts: int
    backoff_rate: float
    max_delay: float | None
    full_jitter: bool


@dataclass(frozen=True)
class Catcher:
    """One entry of Catch."""

    errors: tuple[str, ...]
    target: str
    outcome: Outcome


@dataclass(frozen=True)
class Task:
    """A Task state; `target` None ends the execution."""

    name: str
    target: str | None
    resource: Integration
    arguments: Template
    outcome: Outcome
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]
    timeout: Seconds
    heartbeat: Seconds | None


@dataclass(frozen=True)
class Rule:
    """One entry of Choices."""

    condition: Expression | bool
    target: str
    outcome: Outcome


@dataclass(frozen=True)
class Choice:
    """A Choice state; its own outcome belongs to Default."""

    name: str
    rules: tuple[Rule, ...]
    default: str | None
    outcome: Outcome


@dataclass(frozen=True)
class Wait:
    """A Wait state."""

    name: str
    target: str | None
    seconds: Seconds | None
    """How long, unless it has a timestamp."""
    timestamp: Expression | str | None
    """Until when, as ISO 8601 text; an instant that is past takes no time."""
    outcome: Outcome


@dataclass(frozen=True)
class Pass:
    """A Pass state."""

    name: str
    target: str | None
    outcome: Outcome


@dataclass(frozen=True)
class Succeed:
    """A Succeed state."""

    name: str
    outcome: Outcome


@dataclass(frozen=True)
class Fail:
    """A Fail state; both parts are optional."""

    name: str
    error: Expression | str | None
    cause: Expression | str | None


State = Task | Choice | Wait | Pass | Succeed | Fail


@dataclass(frozen=True)
class Machine:
    """A state machine that can run; `timeout_seconds` None is no limit of its own."""

    name: str
    start_at: str
    states: Mapping[str, State]
    timeout_seconds: float | None
