"""Draws a state machine file as a Mermaid flowchart, for the README: draw_machine.py FILE prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

States = dict[str, dict[str, Any]]


def draw(machine: dict[str, Any]) -> str:
    """Return the flowchart: one line for each way from a state that does something to the next."""
    states: States = machine["States"]
    shown = [name for name, state in states.items() if state["Type"] != "Choice"]
    lines = ["flowchart TD"]
    for name in shown:
        targets = dict.fromkeys(_targets(states, states[name]))
        lines += [f"    {name} --> {target}" for target in targets]
    return "\n".join([*lines, *_failures(states)]) + "\n"


def _targets(states: States, state: dict[str, Any]) -> Iterator[str]:
    ways = [*(rule["Next"] for rule in state.get("Choices", [])), state.get("Default"), state.get("Next")]
    for target in filter(None, ways):
        yield from _shown(states, target)


def _shown(states: States, target: str) -> Iterator[str]:
    """Yield the state, or where a choice leads."""
    if states[target]["Type"] == "Choice":
        yield from _targets(states, states[target])
    else:
        yield target


def _failures(states: States) -> list[str]:
    caught: dict[str, dict[str, None]] = {}
    for name, state in states.items():
        for catcher in state.get("Catch", []):
            for target in _shown(states, catcher["Next"]):
                caught.setdefault(target, {})[name] = None
    return [f"    {' & '.join(names)} -. failure .-> {target}" for target, names in caught.items()]


if __name__ == "__main__":
    sys.stdout.write(draw(json.loads(Path(sys.argv[1]).read_text())))
