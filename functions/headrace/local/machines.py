"""The packaged state machines, ready to run, and the handler behind each function they name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from headrace.local.asl.definition import Machine
from headrace.local.asl.loading import compile_machine, load_machine
from headrace.local.packaged import packaged
from headrace.ports import Cloud, Json

Step = Callable[[Json, Cloud], Json]
MACHINE_ARN = "arn:aws:states:local:000000000000:stateMachine:"
_FUNCTION = re.compile(r'"FunctionName": "\$\{(\w+)\}"')


@cache
def compiled_machines() -> dict[str, Machine]:
    """Return every packaged machine by name, compiled once.

    Raises UnsupportedDefinition, naming the place, for a file that the interpreter would not run.
    """
    files = {path.name.removesuffix(".asl.json"): path for path in sorted(packaged("statemachines").glob("*.asl.json"))}
    return {name: _compiled(name, path, list(files)) for name, path in files.items()}


def _compiled(name: str, path: Path, machines: list[str]) -> Machine:
    text = path.read_text()
    substitutions = {f"{machine.title().replace('_', '')}Machine": MACHINE_ARN + machine for machine in machines}
    substitutions |= {function: function for function in _FUNCTION.findall(text)}
    return compile_machine(name, load_machine(text, substitutions, name))


@cache
def handler(function: str) -> Step:
    """Return the handler of a state or event, by its one name: `PlanLayout` is `handlers.plan_layout.step`.

    Raises ModuleNotFoundError when there is none.
    """
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", function).lower()
    found: Step = importlib.import_module(f"headrace.handlers.{module}").step
    return found
