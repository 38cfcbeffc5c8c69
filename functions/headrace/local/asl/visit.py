"""One visit to one state: what its expressions see, and how it is entered and left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from headrace.local.asl.arns import machine_arn
from headrace.local.asl.definition import Outcome, Seconds, State
from headrace.local.asl.engine import Engine
from headrace.local.asl.errors import DATA_LIMIT, QUERY, RUNTIME, StateFailure
from headrace.local.asl.expressions import Expression, Scope
from headrace.local.asl.history import timestamp
from headrace.local.asl.limits import ALL_VARIABLES_BYTES, LONGEST_SECONDS, VARIABLE_BYTES
from headrace.local.asl.payloads import encode_payload, size_bytes, text_of
from headrace.local.asl.record import Execution

Json = Any


class Payload(NamedTuple):
    """A JSON value beside its text, so that it is measured and written once."""

    value: Json
    text: str


Step = tuple[Payload, str | None]
"""The output of a state and the name of the next one; None is the end."""


class Visit:
    """A state entered with an input."""

    def __init__(self, engine: Engine, execution: Execution, state: State, given: Payload) -> None:
        self.engine = engine
        self.execution = execution
        self.state = state
        self.given = given
        self._context: dict[str, Json] = {}
        self._entered_at = timestamp(engine.now())
        execution.state = state.name
        self.attempt(0, None)
        self._entered_id = self._record("Entered", {"input": given.text, "inputDetails": {"truncated": False}})

    def scope(self, **members: Json) -> Scope:
        """Return what expressions see now; `members` adds result or errorOutput to $states."""
        return Scope(
            states={"input": self.given.value, "context": self._context, **members},
            variables=self.execution.variables,
            functions=self.engine.functions,
            now=self.engine.now,
            state_name=self.state.name,
            entered_id=self._entered_id,
        )

    def attempt(self, retry_count: int, token: str | None) -> None:
        """Renew the context object; `token` is there for a task that waits for it."""
        execution = self.execution
        self._context = {
            "Execution": execution.context,
            "State": {"Name": self.state.name, "EnteredTime": self._entered_at, "RetryCount": retry_count},
            "StateMachine": {"Id": machine_arn(execution.machine.name), "Name": execution.machine.name},
        }
        if token is not None:
            self._context["Task"] = {"Token": token}

    def leave(self, outcome: Outcome, target: str | None, default: Payload, **members: Json) -> Step:
        """Evaluate Output and Assign and record the exit; `default` is the output where none is written.

        Raises StateFailure for an expression that fails and for what outgrows a quota.
        """
        output, assigned = default, {}
        if outcome.output is not None or outcome.assign:
            scope = self.scope(**members)
            if outcome.output is not None:
                output = self._measured(outcome.output.render(scope))
            # All of Assign sees the variables as they were when the state was entered.
            assigned = {name: value.render(scope) for name, value in outcome.assign.items()}
        details: dict[str, Json] = {"output": output.text, "outputDetails": {"truncated": False}}
        if assigned:
            details["assignedVariables"] = self._assign(assigned)
            details["assignedVariablesDetails"] = {"truncated": False}
        self._record("Exited", details)
        return output, target

    def seconds(self, value: Seconds, *, at_least: int) -> float:
        """Return whole seconds, evaluated if need be. Raises StateFailure for anything else."""
        if not isinstance(value, Expression):
            return value
        scope = self.scope()
        found = value.evaluate(scope)
        if isinstance(found, bool) or not isinstance(found, int) or not at_least <= found <= LONGEST_SECONDS:
            raise value.unexpected(scope, "number", found)
        return float(found)

    def seconds_until(self, text: str) -> float:
        """Return the seconds until an instant, 0 when it is past. Raises StateFailure for what is none.

        An instant is ISO 8601 with `T` and a zone, `Z` in capitals (states-language.net/spec.html, "Timestamps").
        """
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            instant = None
        if instant is None or instant.tzinfo is None or "T" not in text:
            raise StateFailure(RUNTIME, f"The Timestamp of state '{self.state.name}' is no timestamp: {text!r}")
        return max(0.0, (instant - self.engine.now()).total_seconds())

    def note(self, failure: StateFailure) -> None:
        """Record the event that AWS records for an expression that failed, and for no other failure."""
        if failure.error == QUERY:
            details = {"error": failure.error, "cause": failure.cause, "state": self.state.name}
            self.execution.history.add("EvaluationFailed", details)

    def _measured(self, output: Json) -> Payload:
        return Payload(output, encode_payload(output, f"The state/task '{self.state.name}' returned a result"))

    def _assign(self, assigned: dict[str, Json]) -> dict[str, str]:
        texts = {name: text_of(value) for name, value in assigned.items()}
        sizes = {name: size_bytes(text) for name, text in texts.items()}
        total = sum((self.execution.variable_bytes | sizes).values())
        if sum(sizes.values()) > VARIABLE_BYTES or total > ALL_VARIABLES_BYTES:
            raise StateFailure(DATA_LIMIT, f"The variables of state '{self.state.name}' exceed the service limit.")
        self.execution.variables |= assigned
        self.execution.variable_bytes |= sizes
        return texts

    def _record(self, suffix: str, details: Mapping[str, Json]) -> int:
        kind = f"{type(self.state).__name__}State{suffix}"
        return self.execution.history.add(kind, details, f"state{suffix}", {"name": self.state.name})
