"""From the text of a state machine to something that can run, or a refusal that names the place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from headrace.local.asl.definition import Machine, State
from headrace.local.asl.errors import UnsupportedDefinition
from headrace.local.asl.fields import Fields
from headrace.local.asl.limits import DEFINITION_BYTES, NAME_CHARACTERS
from headrace.local.asl.payloads import size_bytes
from headrace.local.asl.state_loading import load_state, targets_of

Json = Any
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def load_machine(text: str, substitutions: Mapping[str, str], name: str = "definition") -> dict[str, Json]:
    """Return the parsed definition after each `${Name}` was replaced, as CloudFormation replaces them.

    Raises UnsupportedDefinition for a name without a substitution, for text that is no strict JSON,
    and for anything that the interpreter would not run.
    """
    missing = sorted({found for found in _PLACEHOLDER.findall(text) if found not in substitutions})
    if missing:
        raise UnsupportedDefinition(f"machine {name!r}: no substitution for ${{{missing[0]}}}")
    if size_bytes(text) > DEFINITION_BYTES:
        raise UnsupportedDefinition(f"machine {name!r}: larger than the 1 MiB that AWS takes")
    parsed = _strict_json(_PLACEHOLDER.sub(lambda found: json.dumps(substitutions[found[1]])[1:-1], text), name)
    compile_machine(name, parsed)
    return parsed


def compile_machine(name: str, definition: Mapping[str, Json]) -> Machine:
    """Return a machine that can run. Raises UnsupportedDefinition, naming the machine and the place."""
    top = Fields(f"machine {name!r}", definition)
    top.comment()
    if top.take("QueryLanguage") != "JSONata":
        top.refuse("QueryLanguage must be JSONata")
    if top.has("Version") and top.take("Version") != "1.0":
        top.refuse("Version must be '1.0'")
    timeout = top.number("TimeoutSeconds", None, at_least=1) if top.has("TimeoutSeconds") else None
    start_at = top.text("StartAt")
    states = _states(name, top)
    top.done()
    if start_at not in states:
        top.refuse(f"StartAt names {start_at!r}, which is no state")
    return Machine(name, start_at, states, timeout)


def _states(machine: str, top: Fields) -> dict[str, State]:
    given = top.take("States")
    if not isinstance(given, Mapping) or not given:
        top.refuse("States must be an object with at least one state")
    states = {name: load_state(f"machine {machine!r} state {name!r}", name, fields) for name, fields in given.items()}
    for name, state in states.items():
        if len(name) > NAME_CHARACTERS:
            top.refuse(f"the state name {name!r} is longer than {NAME_CHARACTERS} characters")
        for target in targets_of(state):
            if target not in states:
                raise UnsupportedDefinition(f"machine {machine!r} state {name!r}: {target!r} is no state")
    return states


def _strict_json(text: str, name: str) -> dict[str, Json]:
    def refuse(why: str) -> NoReturn:
        raise UnsupportedDefinition(f"machine {name!r}: {why}")

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        names = [key for key, _ in pairs]
        for key in names:
            if names.count(key) > 1:
                refuse(f"the key {key!r} is given twice")
        return dict(pairs)

    try:
        parsed = json.loads(text, object_pairs_hook=unique, parse_constant=lambda word: refuse(f"{word} is not JSON"))
    except json.JSONDecodeError as error:
        refuse(f"not JSON: {error}")
    if not isinstance(parsed, dict):
        refuse("a state machine is a JSON object")
    return parsed
