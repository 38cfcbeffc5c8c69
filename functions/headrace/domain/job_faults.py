"""Words for what is wrong with a job: its place in the file, what was found, and what to write instead."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.domain.job import JobSpec
from headrace.domain.yaml_tree import NOWHERE, Fault, Path, Place, Tree

MAX_FAULTS = 50
_KEY_LENGTH_SHOWN = 64
_VALUE_LENGTH_SHOWN = 60
_FORMS: dict[str | int, str] = {
    "name": "1 to 40 lower-case letters, digits and dashes",
    "region": "a region such as us-east-1",
    "instance_type": "an EC2 type such as p5.48xlarge",
    "accelerator": "an accelerator such as h100",
    "reservation": "the id of a capacity reservation, such as cr-0123456789abcdef0",
    "workload": "a workload such as unet3d",
    "external_id": "2 to 1,224 letters, digits and characters of + = , . @ : / _ -",
    "signing_region": "lower-case letters, digits and dashes, such as us-east-1 or auto",
    "requirements": "a path of letters, digits and the characters . _ / -",
}


def listed(faults: Iterable[Fault]) -> tuple[str, ...]:
    """Return one line per fault, in the order of the text, at most `MAX_FAULTS` of them and a count of the rest."""
    lines = [str(fault) for fault in sorted(faults)]
    left_out = len(lines) - MAX_FAULTS
    return (*lines[:MAX_FAULTS], f"and {left_out} more faults") if left_out > 0 else tuple(lines)


def model_faults(error: ValidationError, tree: Tree) -> Iterator[Fault]:
    """Yield what the model finds wrong, save where reading the text has already found a fault."""
    known = {fault.place for fault in tree.faults}
    for detail in error.errors(include_url=False):
        place = _place(detail, tree)
        if not _is_echo(detail) and (place not in known or detail["type"] == "missing"):
            path = _path(detail, tree)
            name = ".".join(str(step)[:_KEY_LENGTH_SHOWN] for step in path)
            yield Fault(place, _explanation(detail, path), name or "the job")


def _is_echo(detail: ErrorDetails) -> bool:
    """Tell whether pydantic only says that a list is too short because its one item is bad."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _place(detail: ErrorDetails, tree: Tree) -> Place:
    path = _path(detail, tree)
    if _is_unknown_key(detail) and path in tree.keys:
        return tree.keys[path]
    return next((tree.places[path[:n]] for n in range(len(path), -1, -1) if path[:n] in tree.places), NOWHERE)


def _path(detail: ErrorDetails, tree: Tree) -> Path:
    """Return where the fault lies in the text as written.

    There a single input is no list, results may be an address alone, and keys have no marker: pydantic's, after the
    name of a key that is bad itself, looks like any key.
    """
    path = _as_written(detail["loc"], tree)
    return path[:-1] if path[-1:] == ("[key]",) and path not in tree.keys else path


def _as_written(path: Path, tree: Tree) -> Path:
    given = tree.value if isinstance(tree.value, dict) else {}
    if path == ("results", "to") and not isinstance(given.get("results"), dict):
        return path[:1]
    single_input = isinstance(given.get("data"), dict)
    return (path[0], *path[2:]) if single_input and path[:2] == ("data", 0) else path


def _is_unknown_key(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _explanation(detail: ErrorDetails, path: Path) -> str:
    kind = detail["type"]
    if _is_unknown_key(detail):
        return _unknown_key(path)
    if kind == "missing":
        return "is missing; add it"
    if kind == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    if kind == "string_pattern_mismatch" and path[-1] in _FORMS:
        return f"should be {_FORMS[path[-1]]}{_found(detail, path)}"
    if kind in ("string_type", "tuple_type") or kind.startswith(("int_", "float_")):
        return _wrong_type(detail, path)
    return f"{_lower(detail['msg'])}{_found(detail, path)}"


def _wrong_type(detail: ErrorDetails, path: Path) -> str:
    found, kind = detail["input"], detail["type"]
    if path == ("command",) and isinstance(found, str):
        return f"write the command as a list of words: {json.dumps(found.split()[:20])}"
    if kind == "string_type" and isinstance(found, bool | int | float):
        return f"should be text{_found(detail, path)}; for text, put it in quotes"
    if kind.startswith(("int_", "float_")) and isinstance(found, str):
        return f"should be a number in plain decimal digits, without quotes{_found(detail, path)}"
    return f"{_lower(detail['msg'])}{_found(detail, path)}"


def _lower(message: str) -> str:
    return message.removeprefix("Input ").replace("tuple", "list").replace("dictionary", "mapping")


def _found(detail: ErrorDetails, path: Path) -> str:
    """Say what was found, except in the environment, whose values may be secret, and in place of a secret's name."""
    found = detail["input"]
    if path[:1] == ("environment",) or path[-1:] == ("credentials",) or isinstance(found, BaseModel):
        return ""
    if isinstance(found, dict | list | tuple):
        return f", found a {'mapping' if isinstance(found, dict) else 'list'}"
    return ", found nothing" if found is None else f", found {_shortened(found)}"


def _shortened(found: object) -> str:
    text = found if isinstance(found, str) else json.dumps(found, default=str)
    shown = repr(text) if isinstance(found, str) else text
    return shown if len(shown) <= _VALUE_LENGTH_SHOWN else f"{shown[:_VALUE_LENGTH_SHOWN]}..."


def _unknown_key(path: Path) -> str:
    known = known_keys(path[:-1])
    key = str(path[-1])[:_KEY_LENGTH_SHOWN]
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
    return f"is not a key that a job has; {hint}"


def known_keys(path: Path) -> tuple[str, ...]:
    """Return the keys that the mapping at that path may have."""
    model: type[BaseModel] | None = JobSpec
    for step in path:
        if isinstance(step, str) and model is not None:
            field = model.model_fields.get(step)
            model = _model_within(field.annotation) if field else None
    return tuple(model.model_fields) if model else ()


def _model_within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_within(part))), None)
