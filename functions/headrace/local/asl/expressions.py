"""JSONata inside JSON: what `{% %}` means, compiled once and evaluated against variables of a state."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import jlens

from headrace.local.asl.errors import QUERY, StateFailure
from headrace.local.asl.functions import ADDED_FUNCTIONS

Json = Any
_OPEN, _CLOSE = "{%", "%}"
# Strings, quoted names and comments hide text that only looks like a call.
_NOT_CODE = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|/\*.*?\*/", re.DOTALL)
_PLAIN_PATH = re.compile(r"\$[A-Za-z_]\w*(?:\.(?!(?:and|or|in)\b)[A-Za-z_]\w*)*", re.ASCII)
_NOT_PLAIN = object()
_NAME = re.compile(r"\$(\w+)")


class BadExpression(ValueError):
    """Text between `{%` and `%}` is not JSONata that Step Functions takes."""


class Scope(NamedTuple):
    """What an expression sees: `states` is the reserved `$states`, `variables` are the assigned ones."""

    states: Mapping[str, Json]
    variables: Mapping[str, Json]
    functions: Mapping[str, Callable[..., Json]]
    now: Callable[[], datetime]
    state_name: str
    entered_id: int


class Expression:
    """One JSONata expression at one place of a state; `field` is that place, such as `Output/run/id`."""

    __slots__ = ("_compiled", "_path", "field", "reads", "source")

    def __init__(self, source: str, field: str) -> None:
        self.source = source
        self.field = field
        self._compiled = _compile(source)
        self._path = tuple(source[1:].split(".")) if _PLAIN_PATH.fullmatch(source) else ()
        self.reads = self._compiled.reads

    def evaluate(self, scope: Scope) -> Json:
        """Return the value; null is a value. Raises StateFailure(States.QueryEvaluationError).

        The words are those of AWS (floci-io/floci issue 2665).
        """
        if self._path:
            plain = _follow(self._path, scope)
            if plain is not _NOT_PLAIN:
                return plain
        try:
            found = self._run(scope)
        except (jlens.JlensError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise self._failure(scope, f"threw an error during evaluation. {error}") from error
        if "v" not in found:
            raise self._failure(scope, "returned nothing (undefined).")
        return found["v"]

    def unexpected(self, scope: Scope, expected: str, value: Json) -> StateFailure:
        """Return the failure of a value of the wrong type, for a field that needs `expected`."""
        return self._failure(scope, f"returned an unexpected result type. Expected '{expected}', but was: {value!r}")

    def _run(self, scope: Scope) -> Json:
        # The engine converts each binding whole; a large input must not be paid for by every expression.
        bindings = {name: scope.functions[name] for name in self._compiled.functions}
        for name, read in self.reads.items():
            if name == "states":
                bindings[name] = _pruned(scope.states, read)
            elif name in scope.variables:
                bindings[name] = _pruned(scope.variables[name], read)
        return self._compiled.engine.evaluate(None, bindings, now=scope.now() if self._compiled.timed else None)

    def _failure(self, scope: Scope, what: str) -> StateFailure:
        return StateFailure(
            QUERY,
            f"An error occurred while executing the state '{scope.state_name}' (entered at the event id "
            f"#{scope.entered_id}). The JSONata expression '{self.source}' specified for the field "
            f"'{self.field}' {what}",
        )


@dataclass(frozen=True)
class _Compiled:
    """One source, compiled for all machines: what it reads of each variable and which additions it calls."""

    engine: jlens.Expression
    reads: Mapping[str, Any]
    functions: tuple[str, ...]
    timed: bool


@lru_cache(maxsize=4096)
def _compile(source: str) -> _Compiled:
    called = frozenset(_NAME.findall(_NOT_CODE.sub("''", source)))
    if "eval" in called:
        raise BadExpression("$eval is not available in Step Functions; $parse reads JSON text")
    functions = dict.fromkeys(sorted(ADDED_FUNCTIONS & called), _unused)
    try:
        reads = jlens.Expression(source).reads(functions)
        # The engine answers None for both null and undefined; a field keeps them apart.
        engine = jlens.Expression(f'{{"v":({source}\n)}}')
    except jlens.JlensError as error:
        raise BadExpression(str(error)) from error
    if reads.get("input"):
        # AWS: UNSUPPORTED_JSONATA_EXPRESSION, reference at the top level (floci-io/floci issue 2670).
        raise BadExpression(f"{source!r} reads the top level; start from $states or from a variable")
    free = {name: read for name, read in reads["bindings"].items() if name not in functions}
    return _Compiled(engine, free, tuple(functions), not called.isdisjoint({"now", "millis"}))


def _follow(path: tuple[str, ...], scope: Scope) -> Json:
    """Return what a path through objects leads to, or _NOT_PLAIN where JSONata's own rules begin.

    Nearly every expression of a machine is such a path, and a simulation evaluates them by the
    million; a way through an array, a number with a fraction and absence are left to the engine.
    """
    value: Json = scope.states if path[0] == "states" else scope.variables.get(path[0], _NOT_PLAIN)
    for name in path[1:]:
        if not isinstance(value, dict) or name not in value:
            return _NOT_PLAIN
        value = value[name]
    return value if isinstance(value, str | int | dict | list) or value is None else _NOT_PLAIN


def _unused(*_arguments: Json) -> Json:
    raise AssertionError("reads() only asks which names are functions")


def _pruned(value: Json, read: Any) -> Json:
    if read is True or not isinstance(value, Mapping):
        return value
    return {name: _pruned(value[name], inner) for name, inner in read.items() if name in value}


def expression(text: str, field: str) -> Expression:
    """Compile one `{% %}` string. Raises BadExpression with the fault."""
    return Expression(text[len(_OPEN) : -len(_CLOSE)].strip(), field)


def is_expression(text: str, field: str) -> bool:
    """Tell whether the text is `{%`...`%}` with nothing outside. Raises BadExpression for a half-open one."""
    opened, closed = text.startswith(_OPEN), text.endswith(_CLOSE)
    if opened and closed and len(text) >= len(_OPEN) + len(_CLOSE):
        return True
    bare = text.strip()
    if bare.startswith(_OPEN) or bare.endswith(_CLOSE):
        raise BadExpression(f"{field}: a JSONata string starts with '{{%' and ends with '%}}', without spaces outside")
    return False
