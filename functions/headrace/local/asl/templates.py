"""JSON with JSONata strings anywhere inside it, compiled once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.local.asl.expressions import Expression, Scope, expression, is_expression

Json = Any


@dataclass(frozen=True)
class Template:
    """A JSON value with expressions anywhere in it, ready to evaluate."""

    render: Callable[[Scope], Json]
    expressions: tuple[Expression, ...]


def template(value: Json, field: str) -> Template:
    """Compile a JSON value. Raises BadExpression, naming the field, for an expression that does not parse."""
    expressions: list[Expression] = []
    render = _rendering(value, field, expressions)
    return Template(render, tuple(expressions))


def _rendering(value: Json, field: str, found: list[Expression]) -> Callable[[Scope], Json]:
    before = len(found)
    if isinstance(value, str) and is_expression(value, field):
        found.append(expression(value, field))
        return found[-1].evaluate
    if isinstance(value, dict):
        fields = {name: _rendering(inner, f"{field}/{name}", found) for name, inner in value.items()}
        if len(found) > before:
            return lambda scope: {name: render(scope) for name, render in fields.items()}
    if isinstance(value, list):
        items = [_rendering(inner, f"{field}[{at}]", found) for at, inner in enumerate(value)]
        if len(found) > before:
            return lambda scope: [render(scope) for render in items]
    return lambda _scope: value
