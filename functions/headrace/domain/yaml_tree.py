"""Reads YAML or JSON text into plain values with the place of each, refusing what could hide or explode.

Limits are from reliability.md section 7: 64 KB, depth 20, 2,000 nodes, no aliases, anchors, tags or duplicate keys.
They hold while the text is read, so that nothing large is ever built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from headrace.domain.yaml_words import json_as_yaml, plain_value

MAX_TEXT_BYTES = 64 * 1024
MAX_DEPTH = 20
MAX_NODES = 2_000

Path = tuple[str | int, ...]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Place(NamedTuple):
    """Where something stands in the text; both count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Fault(NamedTuple):
    """One thing that is wrong, and where; faults sort in the order of the text."""

    place: Place
    text: str
    name: str = ""
    """Dotted path of the value, when the fault is one of the model's."""

    def __str__(self) -> str:
        named = f"{self.name}: {self.text}" if self.name else self.text
        if self.place == NOWHERE:
            return named
        return f"{self.place}, {named}" if self.name else f"{self.place}: {named}"


NOWHERE = Place(0, 0)


@dataclass
class Tree:
    """The value read, the place of each of its parts and keys, and the faults found on the way."""

    value: object = None
    places: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    stopped: bool = False
    """True when reading ended early, so that what is missing says nothing."""


class _TooMuch(Exception):
    """A limit is passed, so reading stops."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(text)
        self.place = place


@dataclass
class _Open:
    """A mapping or list that is still being read."""

    path: Path
    items: dict[Any, object] | list[object]
    key: str | None = None


def read_tree(text: str) -> Tree:
    """Return the value of one YAML or JSON document, with faults instead of errors.

    What an unquoted word means is in `headrace.domain.yaml_words`; what stands in quotes is text.
    """
    tree = Tree()
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        tree.faults.append(Fault(NOWHERE, f"the text has {size:,} bytes; at most {MAX_TEXT_BYTES:,} are read"))
        return tree
    tree.stopped = True
    try:
        _Reader(tree).read(json_as_yaml(text.removeprefix("\ufeff")))
        tree.stopped = False
    except _TooMuch as limit:
        tree.faults.append(Fault(limit.place, str(limit)))
    except yaml.MarkedYAMLError as error:
        tree.faults.append(_syntax_fault(error))
    except (yaml.YAMLError, UnicodeError) as error:
        tree.faults.append(Fault(NOWHERE, f"the text is neither YAML nor JSON: {_one_line(str(error))}"))
    return tree


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _syntax_fault(error: yaml.MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    said = _one_line(" ".join(filter(None, (error.context, error.problem, error.note))))
    return Fault(Place(mark.line + 1, mark.column + 1) if mark else NOWHERE, f"not valid YAML: {said}")


class _Reader:
    """Turns the parser's events into a tree, without recursion."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.stack: list[_Open] = []
        self.nodes = 0
        self.documents = 0

    def read(self, text: str) -> None:
        for event in _events(text):
            place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.DocumentStartEvent):
                self._document(event, place)
            elif isinstance(event, yaml.NodeEvent):
                self._node(event, place)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self.stack.pop()
        if not self.documents:
            self._fault(Place(1, 1), "the text is empty; a job needs name, data, results, command and compute")

    def _fault(self, place: Place, text: str) -> None:
        self.tree.faults.append(Fault(place, text))

    def _document(self, event: yaml.DocumentStartEvent, place: Place) -> None:
        self.documents += 1
        if self.documents > 1:
            raise _TooMuch(place, "a second document starts here; a job is one document")
        if event.version or event.tags:
            self._fault(place, "directives such as %YAML and %TAG are not read; remove them")

    def _node(self, event: yaml.NodeEvent, place: Place) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _TooMuch(place, f"more than {MAX_NODES:,} values; a job has few")
        self._refuse_indirection(event, place)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, place)
        elif not isinstance(event, yaml.AliasEvent):
            self._collection(event, place)

    def _refuse_indirection(self, event: yaml.NodeEvent, place: Place) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._fault(place, f"the alias *{event.anchor} is not followed; write the value out")
            self._place_value(None, place)
        elif event.anchor:
            self._fault(place, f"the anchor &{event.anchor} is not read; write the value out where it is needed")
        tag = getattr(event, "tag", None)
        if tag:
            self._fault(
                place,
                f"the tag {tag.replace('tag:yaml.org,2002:', '!!')} is not read; for text, put the value in quotes",
            )

    def _collection(self, event: yaml.NodeEvent, place: Place) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _TooMuch(place, f"nested more than {MAX_DEPTH} deep")
        items: dict[Any, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if self._awaits_key():
            self._fault(place, "a key must be text, not a list or mapping")
            self._no_key(place)
            self.stack.append(_Open((*self.stack[-1].path, f"{place}"), items))
            return
        self.stack.append(_Open(self._place_value(items, place), items))

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        value = event.value if event.style else self._plain(event.value, place)
        if self._awaits_key():
            self._key(value, event.value, place)
        else:
            self._place_value(value, place)

    def _plain(self, text: str, place: Place) -> object:
        try:
            return plain_value(text)
        except ValueError as error:
            self._fault(place, str(error))
            return None

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].items, dict) and self.stack[-1].key is None

    def _no_key(self, place: Place) -> None:
        """Let reading go on after a key that cannot be one, already recorded as a fault."""
        here = self.stack[-1]
        here.key = f"(key at {place})"
        self.tree.keys[*here.path, here.key] = place

    def _key(self, value: object, text: str, place: Place) -> None:
        here = self.stack[-1]
        if not isinstance(value, str):
            self._fault(place, f"the key {text[:60]!r} is not text; put it in quotes")
        if text == "<<":
            self._fault(place, "the merge key '<<' is not followed; write the values out")
        here.key = text
        first = self.tree.keys.setdefault((*here.path, text), place)
        if first is not place:
            self._fault(place, f"the key {text[:60]!r} is given twice, first on line {first.line}; remove one")

    def _place_value(self, value: object, place: Place) -> Path:
        """Put the value where it belongs and return its path."""
        if self._awaits_key():
            self._no_key(place)
            return ()
        if not self.stack:
            self.tree.value = value
            self.tree.places[()] = place
            return ()
        here = self.stack[-1]
        if isinstance(here.items, list):
            here.items.append(value)
            path: Path = (*here.path, len(here.items) - 1)
        else:
            key, here.key = here.key or "", None
            here.items.setdefault(key, value)
            path = (*here.path, key)
        self.tree.places[path] = place
        return path


def _events(text: str) -> Iterator[Any]:
    return iter(yaml.parse(text, Loader=_LOADER))
