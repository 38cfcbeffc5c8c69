"""The roads of a state machine as written: which state leads where, and which variables each road has set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

State = Mapping[str, Any]
States = Mapping[str, State]


class Edge(NamedTuple):
    """One way from a state to the next; `assigned` are the variables set on that way."""

    source: str
    field: str
    target: str
    assigned: frozenset[str]


def edges(states: States) -> Iterator[Edge]:
    """Yield every way out of every state, whether or not its target exists."""
    for name, state in states.items():
        own = frozenset(state.get("Assign", {}))
        for field in ("Next", "Default"):
            if field in state:
                yield Edge(name, field, state[field], own)
        for field in ("Catch", "Choices"):
            for at, entry in enumerate(state.get(field, [])):
                yield Edge(name, f"{field}[{at}]", entry["Next"], frozenset(entry.get("Assign", {})))


def reachable(states: States, starts: Iterable[str]) -> frozenset[str]:
    """Return the states on any road from `starts`, these included."""
    followers: dict[str, list[str]] = {name: [] for name in states}
    for edge in edges(states):
        followers[edge.source].append(edge.target)
    found: set[str] = set()
    waiting = [name for name in starts if name in states]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [target for target in followers[name] if target in states]
    return frozenset(found)


def assigned_before(states: States, start: str) -> dict[str, frozenset[str]]:
    """Return, for each state, the variables that at least one road from the start has set on entering it."""
    before = {name: frozenset[str]() for name in states}
    ways = [edge for edge in edges(states) if edge.source in reachable(states, [start]) and edge.target in states]
    changed = True
    while changed:
        changed = False
        for edge in ways:
            grown = before[edge.target] | before[edge.source] | edge.assigned
            changed = changed or grown != before[edge.target]
            before[edge.target] = grown
    return before
