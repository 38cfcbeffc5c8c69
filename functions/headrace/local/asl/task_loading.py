"""A Task state of a definition, with its arguments, Retry and Catch checked."""

from __future__ import annotations

from headrace.local.asl.definition import (
    INTEGRATIONS,
    INVOKE,
    INVOKE_AND_WAIT,
    PUT_EVENTS,
    START_EXECUTION,
    Catcher,
    Integration,
    Retrier,
    Task,
)
from headrace.local.asl.errors import ALL
from headrace.local.asl.fields import ENTERED, Fields
from headrace.local.asl.limits import LONGEST_SECONDS

_RESULT = ENTERED | {"result"}
_CAUGHT = ENTERED | {"errorOutput"}
_ARGUMENTS = {
    INVOKE: ("FunctionName", {"Payload"}),
    INVOKE_AND_WAIT: ("FunctionName", {"Payload"}),
    START_EXECUTION: ("StateMachineArn", {"Input", "Name"}),
    PUT_EVENTS: ("Entries", set()),
}
"""The argument each integration needs, and those it may have."""


def load_task(name: str, fields: Fields) -> Task:
    """Return the Task state. Raises UnsupportedDefinition."""
    resource = _integration(fields)
    heartbeat = fields.seconds("HeartbeatSeconds", at_least=1) if fields.has("HeartbeatSeconds") else None
    if heartbeat is not None and resource != INVOKE_AND_WAIT:
        fields.refuse("HeartbeatSeconds is supported only where a task token lets someone send a heartbeat")
    timeout = fields.seconds("TimeoutSeconds", at_least=1) if fields.has("TimeoutSeconds") else LONGEST_SECONDS
    if isinstance(timeout, float) and isinstance(heartbeat, float) and heartbeat >= timeout:
        fields.refuse("HeartbeatSeconds must be smaller than TimeoutSeconds")
    _check_arguments(fields, resource)
    return Task(
        name=name,
        target=fields.target(),
        resource=resource,
        arguments=fields.template("Arguments", ENTERED),
        outcome=fields.outcome(_RESULT),
        retry=tuple(_retrier(entry) for entry in _handlers(fields, "Retry")),
        catch=tuple(_catcher(entry, at) for at, entry in enumerate(_handlers(fields, "Catch"))),
        timeout=timeout,
        heartbeat=heartbeat,
    )


def _integration(fields: Fields) -> Integration:
    wanted = fields.text("Resource")
    if wanted not in INTEGRATIONS:
        fields.refuse(f"the integration {wanted!r} is not supported")
    return INTEGRATIONS[INTEGRATIONS.index(wanted)]


def _check_arguments(fields: Fields, resource: Integration) -> None:
    if not fields.has("Arguments"):
        fields.refuse("field 'Arguments' is missing")
    needed, optional = _ARGUMENTS[resource]
    given = fields.peek("Arguments")
    if not isinstance(given, dict):
        fields.refuse("field 'Arguments' must be an object")
    if needed not in given:
        fields.refuse(f"argument {needed!r} of {resource} is missing")
    unknown = sorted(set(given) - optional - {needed})
    if unknown:
        fields.refuse(f"argument {unknown[0]!r} of {resource} is not supported")


def _handlers(fields: Fields, name: str) -> list[Fields]:
    """Return the entries of Retry or Catch, States.ALL being alone and last as AWS demands."""
    entries = fields.inner(name) if fields.has(name) else []
    for at, entry in enumerate(entries):
        errors = entry.peek("ErrorEquals")
        if not isinstance(errors, list) or not errors or not all(isinstance(error, str) for error in errors):
            entry.refuse("field 'ErrorEquals' must be a list of error names")
        if ALL in errors and (len(errors) > 1 or at < len(entries) - 1):
            entry.refuse("States.ALL must stand alone, in the last entry")
    return entries


def _retrier(entry: Fields) -> Retrier:
    entry.comment()
    jitter = entry.take("JitterStrategy") if entry.has("JitterStrategy") else "NONE"
    if jitter not in ("FULL", "NONE"):
        entry.refuse("field 'JitterStrategy' must be FULL or NONE")
    interval = entry.number("IntervalSeconds", 1, at_least=1)
    capped = entry.has("MaxDelaySeconds")
    retrier = Retrier(
        errors=tuple(entry.take("ErrorEquals")),
        interval=interval,
        max_attempts=int(entry.number("MaxAttempts", 3, at_least=0)),
        backoff_rate=entry.number("BackoffRate", 2.0, at_least=1, whole=False),
        max_delay=entry.number("MaxDelaySeconds", None, at_least=interval + 1) if capped else None,
        full_jitter=jitter == "FULL",
    )
    entry.done()
    return retrier


def _catcher(entry: Fields, at: int) -> Catcher:
    entry.comment()
    catcher = Catcher(
        errors=tuple(entry.take("ErrorEquals")),
        target=entry.text("Next"),
        outcome=entry.outcome(_CAUGHT, f"Catch[{at}]/"),
    )
    entry.done()
    return catcher
