"""Decides as IAM does, from the policies of a template: which role may do what, where, under which circumstances."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from tests.infra.assembly import Assembly

Circumstances = Mapping[str, str | list[str]]
VARIABLE = re.compile(r"\$\{([^}]+)\}")


def matches(pattern: str, text: str) -> bool:
    """Tell whether the text fits a pattern of IAM, in which * is any text and ? any character."""
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [".*" if one == "*" else "." if one == "?" else re.escape(one) for one in pattern]
    return re.compile("".join(parts), re.DOTALL)


def _equals(wanted: str, found: str) -> bool:
    return wanted == found


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": _equals,
    "StringLike": matches,
    "ArnEquals": matches,
    "ArnLike": matches,
    "Bool": lambda wanted, found: wanted.lower() == found.lower(),
}


class Role:
    """One role of a stack, with every statement that its inline and attached policies hold."""

    def __init__(self, assembly: Assembly, logical_id: str) -> None:
        self.logical_id = logical_id
        self.statements = list(_statements(assembly, logical_id))

    def may(self, action: str, resource: str = "*", circumstances: Circumstances | None = None) -> bool:
        """Tell whether the role may do it. A denial wins; what nothing allows is denied."""
        given = circumstances or {}
        effects = {one["Effect"] for one in self.statements if _applies(one, action, resource, given)}
        return "Allow" in effects and "Deny" not in effects

    def actions(self) -> set[str]:
        """Return every action that some statement names."""
        return {action for one in self.statements for action in as_list(one["Action"])}


def roles(assembly: Assembly) -> dict[str, Role]:
    """Return every role of the stack by its logical id."""
    return {id_: Role(assembly, id_) for id_ in assembly.of_type("AWS::IAM::Role")}


def role_of_function(assembly: Assembly, name: str) -> Role:
    """Return the role of a function, by its name without the stack's."""
    arn = assembly.by_name("AWS::Lambda::Function", "FunctionName")[name]["Role"]
    return Role(assembly, arn.rpartition("/")[2])


def role_of_machine(assembly: Assembly, stem: str) -> Role:
    """Return the role of a state machine, by its file's stem."""
    arn = assembly.by_name("AWS::StepFunctions::StateMachine", "StateMachineName")[stem]["RoleArn"]
    return Role(assembly, arn.rpartition("/")[2])


def role_of_nodes(assembly: Assembly) -> Role:
    """Return the role in the launch templates' instance profile."""
    (profile,) = (
        one for id_, one in assembly.of_type("AWS::IAM::InstanceProfile").items() if id_.startswith("NodesProfile")
    )
    return Role(assembly, profile["Roles"][0])


def as_list(value: Any) -> list[Any]:
    """Return a list of one, or the list."""
    return value if isinstance(value, list) else [value]


def _statements(assembly: Assembly, role: str) -> Iterator[dict[str, Any]]:
    own = assembly.of_type("AWS::IAM::Role")[role].get("Policies", ())
    attached = (one for one in assembly.of_type("AWS::IAM::Policy").values() if role in one.get("Roles", ()))
    for policy in (*own, *attached):
        yield from as_list(policy["PolicyDocument"]["Statement"])


def _applies(statement: Mapping[str, Any], action: str, resource: str, given: Circumstances) -> bool:
    # Actions are compared without case, resources with it.
    is_named = any(matches(one.lower(), action.lower()) for one in as_list(statement["Action"]))
    patterns = [_filled(one, given) for one in as_list(statement["Resource"])]
    is_covered = any(pattern is not None and matches(pattern, resource) for pattern in patterns)
    return is_named and is_covered and _conditions_hold(statement.get("Condition", {}), given)


def _filled(pattern: str, given: Circumstances) -> str | None:
    """Return the pattern with policy variables filled in, or None where one is not known, which matches nothing."""
    names = VARIABLE.findall(pattern)
    if any(name not in given for name in names):
        return None
    return VARIABLE.sub(lambda found: str(given[found[1]]), pattern)


def _conditions_hold(conditions: Mapping[str, Mapping[str, Any]], given: Circumstances) -> bool:
    return all(
        _holds(operator, as_list(wanted), given.get(key))
        for operator, tests in conditions.items()
        for key, wanted in tests.items()
    )


def _holds(operator: str, wanted: Iterable[str], found: str | list[str] | None) -> bool:
    """Tell whether one condition holds; a key that is not there fails it. Raises KeyError for an unknown operator."""
    compare = OPERATORS[operator]
    return found is not None and any(compare(one, value) for one in wanted for value in as_list(found))
