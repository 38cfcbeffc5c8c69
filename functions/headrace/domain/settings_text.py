"""Reads the text of a settings file, such as price overrides or a policy, or says everything that is wrong with it."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from headrace.domain.errors import BadSettings
from headrace.domain.model import Model
from headrace.domain.yaml_tree import NOWHERE, Fault, Path, Tree, read_tree

M = TypeVar("M", bound=Model)


def parse_settings(text: str, kind: type[M], file: str) -> M:
    """Return the settings that YAML or JSON text describes. Raises BadSettings with every fault and its place."""
    tree = read_tree(text)
    if tree.faults:
        raise BadSettings(file, tuple(map(str, sorted(tree.faults))))
    if not isinstance(tree.value, dict):
        raise BadSettings(file, ("it is not a mapping of names and values",))
    try:
        return kind.model_validate(tree.value)
    except ValidationError as error:
        faults = sorted(_fault(tuple(one["loc"]), one["msg"], tree) for one in error.errors(include_url=False))
        raise BadSettings(file, tuple(map(str, faults))) from None


def _fault(path: Path, message: str, tree: Tree) -> Fault:
    shown = tuple(step for step in path if step != "[key]")
    place = tree.keys.get(shown) or next(
        (tree.places[shown[:n]] for n in range(len(shown), -1, -1) if shown[:n] in tree.places), NOWHERE
    )
    return Fault(place, message.removeprefix("Value error, "), ".".join(map(str, shown)))
