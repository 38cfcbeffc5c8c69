"""One state of a definition, by type, with every field checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.local.asl.definition import Choice, Fail, Pass, Rule, State, Succeed, Task, Wait
from headrace.local.asl.fields import ENTERED, Fields
from headrace.local.asl.task_loading import load_task

Json = Any


def load_state(place: str, name: str, definition: Json) -> State:
    """Return the state. Raises UnsupportedDefinition for a type or field that our machines do not use."""
    fields = Fields(place, definition)
    kind = fields.text("Type")
    if kind not in _LOADERS:
        fields.refuse(f"states of type {kind!r} are not supported")
    fields.comment()
    state = _LOADERS[kind](name, fields)
    fields.done()
    return state


def targets_of(state: State) -> Iterator[str]:
    """Yield the name of every state that may follow."""
    match state:
        case Task():
            yield from (catcher.target for catcher in state.catch)
        case Choice():
            yield from (rule.target for rule in state.rules)
            if state.default is not None:
                yield state.default
    if isinstance(state, Task | Wait | Pass) and state.target is not None:
        yield state.target


def _choice(name: str, fields: Fields) -> Choice:
    rules = tuple(_rule(entry, at) for at, entry in enumerate(fields.inner("Choices")))
    default = fields.text("Default") if fields.has("Default") else None
    return Choice(name, rules, default, fields.outcome(ENTERED))


def _rule(entry: Fields, at: int) -> Rule:
    entry.comment()
    literal = isinstance(entry.peek("Condition"), bool)
    condition = entry.take("Condition") if literal else entry.expression("Condition", ENTERED, f"Choices[{at}]/")
    rule = Rule(condition, entry.text("Next"), entry.outcome(ENTERED, f"Choices[{at}]/"))
    entry.done()
    return rule


def _wait(name: str, fields: Fields) -> Wait:
    has_instant = fields.has("Timestamp")
    seconds = None if has_instant else fields.seconds("Seconds", at_least=0)
    return Wait(name, fields.target(), seconds, fields.words("Timestamp"), fields.outcome(ENTERED))


def _pass(name: str, fields: Fields) -> Pass:
    return Pass(name, fields.target(), fields.outcome(ENTERED))


def _succeed(name: str, fields: Fields) -> Succeed:
    return Succeed(name, fields.outcome(ENTERED, assigns=False))


def _fail(name: str, fields: Fields) -> Fail:
    return Fail(name, fields.words("Error"), fields.words("Cause"))


_LOADERS: dict[str, Callable[[str, Fields], State]] = {
    "Task": load_task,
    "Choice": _choice,
    "Wait": _wait,
    "Pass": _pass,
    "Succeed": _succeed,
    "Fail": _fail,
}
