"""Strict reading of one JSON object of a definition: what is not asked for is refused by name and place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from headrace.local.asl.definition import Outcome, Seconds
from headrace.local.asl.errors import UnsupportedDefinition
from headrace.local.asl.expressions import BadExpression, Expression, expression, is_expression
from headrace.local.asl.templates import Template, template

Json = Any
ENTERED = frozenset({"input", "context"})
"""Members of $states that exist as soon as a state is entered."""


class Fields:
    """The fields of one object at one place, such as "machine 'fleet' state 'Launch'"."""

    def __init__(self, place: str, fields: Json) -> None:
        self.place = place
        if not isinstance(fields, Mapping):
            self.refuse(f"expected an object, not {type(fields).__name__}")
        self._fields: dict[str, Json] = dict(fields)

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedDefinition with the place."""
        raise UnsupportedDefinition(f"{self.place}: {why}")

    def done(self) -> None:
        """Refuse whatever was not taken."""
        if self._fields:
            self.refuse(f"field {sorted(self._fields)[0]!r} is not supported by this interpreter")

    def has(self, name: str) -> bool:
        """Tell whether the field is there and was not taken yet."""
        return name in self._fields

    def take(self, name: str) -> Json:
        """Return the raw field. Refuses its absence."""
        if name not in self._fields:
            self.refuse(f"field {name!r} is missing")
        return self._fields.pop(name)

    def peek(self, name: str) -> Json:
        """Return the raw field, which stays to be taken; None when it is absent."""
        return self._fields.get(name)

    def text(self, name: str) -> str:
        """Return a field that must be a non-empty string."""
        value = self.take(name)
        if not isinstance(value, str) or not value:
            self.refuse(f"field {name!r} must be a non-empty string")
        return value

    def comment(self) -> None:
        """Accept a Comment, which changes nothing."""
        if self.has("Comment"):
            self.text("Comment")

    def inner(self, name: str) -> list[Fields]:
        """Return the objects of a list, each with its own place."""
        value = self.take(name)
        if not isinstance(value, list) or not value:
            self.refuse(f"field {name!r} must be a list with at least one entry")
        return [Fields(f"{self.place} {name}[{at}]", entry) for at, entry in enumerate(value)]

    def target(self) -> str | None:
        """Return the name in Next, or None for End; one of the two must be there."""
        if not self.has("End"):
            return self.text("Next")
        if self.has("Next") or self.take("End") is not True:
            self.refuse("either Next names a state or End is true, not both")
        return None

    def number(self, name: str, default: float | None, *, at_least: float, whole: bool = True) -> float:
        """Return a number field. Refuses absence without a default, booleans and what is below `at_least`."""
        if default is not None and not self.has(name):
            return default
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value < at_least:
            self.refuse(f"field {name!r} must be a {'whole ' if whole else ''}number of at least {at_least:g}")
        return float(value)

    def seconds(self, name: str, *, at_least: float) -> Seconds:
        """Return a number of seconds, or the expression that gives it."""
        if isinstance(self.peek(name), str):
            return self.expression(name, ENTERED)
        return self.number(name, None, at_least=at_least)

    def words(self, name: str) -> Expression | str | None:
        """Return an optional text, or the expression that gives it."""
        if not self.has(name):
            return None
        value = self.text(name)
        if not value.startswith("{%"):
            return value
        self._fields[name] = value
        return self.expression(name, ENTERED)

    def expression(self, name: str, members: frozenset[str], within: str = "") -> Expression:
        """Return a field that must be one JSONata string; `members` are what it may read of $states."""
        value = self.text(name)
        try:
            if not is_expression(value, name):
                self.refuse(f"field {name!r} must be a JSONata string, {{% ... %}}")
            compiled = expression(value, f"{within}{name}")
        except BadExpression as error:
            self.refuse(f"field {name!r}: {error}")
        self._hold_to(members, name, [compiled])
        return compiled

    def template(self, name: str, members: frozenset[str], within: str = "") -> Template:
        """Return a field that may hold expressions anywhere. `within` is the path that AWS puts before it."""
        try:
            compiled = template(self.take(name), f"{within}{name}")
        except BadExpression as error:
            self.refuse(f"field {name!r}: {error}")
        self._hold_to(members, name, compiled.expressions)
        return compiled

    def outcome(self, members: frozenset[str], within: str = "", *, assigns: bool = True) -> Outcome:
        """Return Output and, where the state `assigns`, Assign; both may read `members` of $states."""
        output = self.template("Output", members, within) if self.has("Output") else None
        return Outcome(output, self._assign(members, within) if assigns and self.has("Assign") else {})

    def _assign(self, members: frozenset[str], within: str) -> dict[str, Template]:
        given = Fields(f"{self.place} Assign", self.take("Assign"))
        assigned = {name: given.template(name, members, f"{within}Assign/") for name in list(given._fields)}
        for name in assigned:
            # The rule for names is in the Step Functions guide, workflow-variables.html.
            if not name.isidentifier() or name == "states" or len(name) > 80:  # noqa: PLR2004
                given.refuse(f"{name!r} cannot name a variable")
        return assigned

    def _hold_to(self, members: frozenset[str], field: str, expressions: Sequence[Expression]) -> None:
        for compiled in expressions:
            read = compiled.reads.get("states", {})
            # When a machine is created, AWS refuses what $states cannot hold at that place.
            for member in set() if read is True else sorted(set(read) - members):
                self.refuse(f"field {field!r}: $states.{member} is not available here")
