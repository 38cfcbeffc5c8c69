"""What our state machines must keep to beyond being valid: time-outs, catches, names, roads to clean-up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.local.asl.definition import INTEGRATIONS, INVOKE, INVOKE_AND_WAIT, START_EXECUTION
from headrace.local.asl.errors import UnsupportedDefinition
from headrace.local.asl.expressions import BadExpression
from headrace.local.asl.loading import compile_machine
from headrace.local.asl.templates import template
from tests.statemachines.asl_graph import State, assigned_before, edges, reachable

_LONGEST_FILE = 150
_SUBSTITUTION = re.compile(r"\$\{([^}]*)\}")
# docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html, those a Task can meet.
_STATES_ERRORS = frozenset(
    f"States.{name}"
    for name in (
        *("ALL", "DataLimitExceeded", "HeartbeatTimeout", "Permissions", "QueryEvaluationError"),
        *("Runtime", "TaskFailed", "Timeout"),
    )
)


@dataclass(frozen=True)
class _Machine:
    name: str
    definition: Mapping[str, Any]
    known_functions: Collection[str]
    known_machines: Collection[str]
    known_errors: Collection[str]
    admission: str
    cleanup: str
    called_otherwise: Mapping[str, str]
    text: str | None
    states: Mapping[str, State] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", self.definition["States"])

    def tasks(self) -> Iterator[tuple[str, State]]:
        return ((name, state) for name, state in self.states.items() if state["Type"] == "Task")


def lint(
    name: str,
    definition: Mapping[str, Any],
    *,
    known_functions: Collection[str],
    known_machines: Collection[str],
    known_errors: Collection[str],
    admission: str = "AdmitRun",
    cleanup: str = "Decommission",
    called_otherwise: Mapping[str, str] | None = None,
    text: str | None = None,
) -> list[str]:
    """Return every fault of a definition whose `${Names}` are still in it, each with its place.

    `called_otherwise` maps states to the function they call where that is not the state's own
    name. `text` is the file, to measure its length. Rules about clean-up hold for machines that
    have the `admission` state: each Task between it and `cleanup` must catch States.ALL, and each
    of its catches must lead to `cleanup`.
    """
    machine = _Machine(
        name,
        definition,
        known_functions,
        known_machines,
        known_errors,
        admission,
        cleanup,
        called_otherwise or {},
        text,
    )
    # Where a target is wrong, what the roads say is only an echo of that.
    rules = _RULES if any(_targets(machine)) else (*_RULES, *_ROAD_RULES)
    found = [f"machine {name!r}{fault}" for rule in rules for fault in rule(machine)]
    return found or _refused(machine)


def _refused(machine: _Machine) -> list[str]:
    """Return what the interpreter says, when the rules above found nothing."""
    try:
        compile_machine(machine.name, machine.definition)
    except UnsupportedDefinition as refusal:
        return [str(refusal)]
    return []


def _whole_machine(machine: _Machine) -> Iterator[str]:
    if "TimeoutSeconds" not in machine.definition:
        yield ": no TimeoutSeconds"
    lines = 0 if machine.text is None else len(machine.text.splitlines())
    if lines > _LONGEST_FILE:
        yield f": {lines} lines, more than {_LONGEST_FILE}"


def _comments(machine: _Machine) -> Iterator[str]:
    for name, state in machine.states.items():
        if "Comment" not in state:
            yield f" state {name!r}: no Comment"


def _integrations(machine: _Machine) -> Iterator[str]:
    for name, state in machine.tasks():
        if state["Resource"] not in INTEGRATIONS:
            yield f" state {name!r}: the integration {state['Resource']!r} is not one of ours"


def _time_limits(machine: _Machine) -> Iterator[str]:
    for name, state in machine.tasks():
        heartbeat, timeout = state.get("HeartbeatSeconds"), state.get("TimeoutSeconds")
        if timeout is None:
            yield f" state {name!r}: no TimeoutSeconds"
        if heartbeat is None and state["Resource"] == INVOKE_AND_WAIT:
            yield f" state {name!r}: waits for a token without HeartbeatSeconds"
        if isinstance(heartbeat, int) and isinstance(timeout, int) and heartbeat >= timeout:
            yield f" state {name!r}: HeartbeatSeconds {heartbeat} is not below TimeoutSeconds {timeout}"


def _error_lists(machine: _Machine) -> Iterator[str]:
    for name, state in machine.tasks():
        for kind in ("Retry", "Catch"):
            entries = state.get(kind, [])
            for at, entry in enumerate(entries):
                place = f" state {name!r} {kind}[{at}]"
                yield from _error_list(machine, place, state, entry["ErrorEquals"], last=at == len(entries) - 1)


def _error_list(machine: _Machine, place: str, state: State, errors: list[str], *, last: bool) -> Iterator[str]:
    if "States.ALL" in errors and len(errors) > 1:
        yield f"{place}: States.ALL does not stand alone"
    if "States.ALL" in errors and not last:
        yield f"{place}: States.ALL is not last"
    if "HeartbeatSeconds" in state and "States.Timeout" in errors and "States.HeartbeatTimeout" not in errors:
        yield f"{place}: States.Timeout without States.HeartbeatTimeout, on a task with a heartbeat"
    for error in errors:
        ours = error in machine.known_errors or error in _STATES_ERRORS
        if not ours and not error.startswith(("Lambda.", "Sandbox.")):
            yield f"{place}: nobody raises {error!r}"


def _targets(machine: _Machine) -> Iterator[str]:
    if machine.definition["StartAt"] not in machine.states:
        yield f": StartAt names {machine.definition['StartAt']!r}, which is no state"
    for edge in edges(machine.states):
        if edge.target not in machine.states:
            yield f" state {edge.source!r} {edge.field}: {edge.target!r} is no state"


def _unreachable(machine: _Machine) -> Iterator[str]:
    for name in sorted(machine.states.keys() - reachable(machine.states, [machine.definition["StartAt"]])):
        yield f" state {name!r}: no road leads here"


def _roads_to_cleanup(machine: _Machine) -> Iterator[str]:
    if machine.admission not in machine.states:
        return
    if machine.cleanup not in machine.states:
        yield f": has {machine.admission!r} and no {machine.cleanup!r}"
    after = reachable(machine.states, [machine.admission]) - {machine.admission}
    for name, state in machine.tasks():
        if name in after - reachable(machine.states, [machine.cleanup]):
            yield from _road_of(machine, name, state)


def _road_of(machine: _Machine, name: str, state: State) -> Iterator[str]:
    catches = state.get("Catch", [])
    if not catches or catches[-1]["ErrorEquals"] != ["States.ALL"]:
        yield f" state {name!r}: comes after {machine.admission!r} and does not catch States.ALL"
    for at, catcher in enumerate(catches):
        if machine.cleanup not in reachable(machine.states, [catcher["Next"]]):
            yield f" state {name!r} Catch[{at}]: does not lead to {machine.cleanup!r}"


def _calls(machine: _Machine) -> Iterator[str]:
    for name, state in machine.tasks():
        if state["Resource"] in (INVOKE, INVOKE_AND_WAIT):
            wanted = machine.called_otherwise.get(name, name)
            if state["Arguments"].get("FunctionName") != f"${{{wanted}}}":
                yield f" state {name!r}: must call ${{{wanted}}}, not {state['Arguments'].get('FunctionName')}"
        if state["Resource"] == START_EXECUTION:
            yield from _started(machine, name, state["Arguments"].get("StateMachineArn", ""))


def _started(machine: _Machine, name: str, called: str) -> Iterator[str]:
    found = _SUBSTITUTION.fullmatch(called)
    if found is None or found[1] in machine.known_functions:
        yield f" state {name!r}: must start a machine by ${{Name}}, not {called!r}"


def _substitutions(machine: _Machine) -> Iterator[str]:
    known = {*machine.known_functions, *machine.known_machines}
    for name in sorted(set(_SUBSTITUTION.findall(json.dumps(machine.definition))) - known):
        yield f": ${{{name}}} is no function and no machine"


def _expressions(machine: _Machine) -> Iterator[str]:
    for name, state in machine.states.items():
        try:
            template(state, "")
        except BadExpression as error:
            yield f" state {name!r}: {error}"


def _variables(machine: _Machine) -> Iterator[str]:
    before = assigned_before(machine.states, machine.definition["StartAt"])
    for name in sorted(reachable(machine.states, [machine.definition["StartAt"]])):
        for variable in sorted(_variables_read(machine.states[name]) - before[name]):
            yield f" state {name!r}: reads ${variable}, which no road to it assigns"


def _variables_read(state: State) -> frozenset[str]:
    try:
        compiled = template(state, "").expressions
    except BadExpression:
        return frozenset()
    return frozenset(variable for expression in compiled for variable in expression.reads) - {"states"}


_Rule = Callable[[_Machine], Iterator[str]]
_RULES: tuple[_Rule, ...] = (
    _whole_machine,
    _comments,
    _integrations,
    _time_limits,
    _error_lists,
    _targets,
    _calls,
    _substitutions,
    _expressions,
)
_ROAD_RULES: tuple[_Rule, ...] = (_unreachable, _roads_to_cleanup, _variables)
