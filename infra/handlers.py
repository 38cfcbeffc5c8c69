"""What there is to deploy, learned by listing files: handlers, state machines, and which calls which."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from infra.checkout import CHECKOUT

HANDLERS = CHECKOUT / "functions" / "headrace" / "handlers"
MACHINES = CHECKOUT / "statemachines"
ENDING = ".asl.json"
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
NESTED = "Machine"
"""How a placeholder for a state machine ends; before it is the machine's name in capitals."""


def camel(name: str) -> str:
    """Return `PlanLayout` for `plan_layout`."""
    return "".join(part.title() for part in name.split("_"))


def snake(name: str) -> str:
    """Return `plan_layout` for `PlanLayout`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def handler_modules() -> list[str]:
    """Return the module of each handler."""
    return sorted(path.stem for path in HANDLERS.glob("[a-z]*.py"))


def machine_texts() -> dict[str, str]:
    """Return each machine's definition by its stem, those that are nested in others first."""
    texts = {path.name.removesuffix(ENDING): path.read_text(encoding="utf-8") for path in MACHINES.glob(f"*{ENDING}")}
    return dict(sorted(texts.items(), key=lambda item: (len(nested_machines(item[1])), item[0])))


def nested_machines(text: str) -> list[str]:
    """Return the stems of the machines that a definition starts."""
    names = sorted(set(PLACEHOLDER.findall(text)))
    return [snake(name.removesuffix(NESTED)) for name in names if name.endswith(NESTED)]


def called_functions(text: str) -> list[str]:
    """Return the names of the functions that a definition calls."""
    return sorted({name for name in PLACEHOLDER.findall(text) if not name.endswith(NESTED)})


def time_limits() -> Mapping[str, int]:
    """Return, by function, the shortest time in seconds that a state which calls it allows.

    A state that waits for a token has a limit for the wait, not for the function, and counts not.
    """
    limits: dict[str, int] = {}
    for text in machine_texts().values():
        for state in json.loads(text)["States"].values():
            seconds = state.get("TimeoutSeconds")
            if state.get("Resource", "").endswith(":lambda:invoke") and isinstance(seconds, int):
                name = _called_by(state)
                limits[name] = min(seconds, limits.get(name, seconds))
    return limits


def _called_by(state: Mapping[str, Any]) -> str:
    return str(state["Arguments"]["FunctionName"]).strip("${}")
