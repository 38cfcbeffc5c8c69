"""Writes down every call that crosses the ports, so that two runs of one seed can be compared byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from headrace.ports import Cloud

PORTS = ("fleets", "nodes", "objects", "bus", "runs", "executions", "prices", "clock", "entropy")
PASSED_ON = ("settings", "checks", "elsewhere")
T = TypeVar("T")


def recorded(cloud: Cloud, write: Callable[[str], None]) -> Cloud:
    """Return the same cloud, of which each call gives `write` one line of JSON.

    A line holds the number of the call, its port and method, the SHA-256 of its arguments, and that of its answer or
    the name of the error raised. Values are hashed, not written, so that no key gets into the record.
    """
    count = 0

    def note(line: dict[str, str]) -> None:
        nonlocal count
        count += 1
        write(json.dumps({"call": count, **line}, separators=(",", ":")))

    ports: dict[str, Any] = {name: _Recording(name, getattr(cloud, name), note) for name in PORTS}
    return Cloud(**ports, **{name: getattr(cloud, name) for name in PASSED_ON})


def digest(value: object) -> str:
    """Return the SHA-256, in hexadecimal, of a value as JSON with sorted keys."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _Recording:
    """Any port, with a note of each call of any of its methods."""

    def __init__(self, name: str, port: object, note: Callable[[dict[str, str]], None]) -> None:
        self._name = name
        self._port = port
        self._note = note

    def __getattr__(self, method: str) -> Any:
        return self._noted(method, getattr(self._port, method))

    def _noted(self, method: str, call: Callable[..., T]) -> Callable[..., T]:
        @wraps(call)
        def noted(*args: Any, **kwargs: Any) -> T:
            line = {"port": self._name, "method": method, "arguments": digest([args, kwargs])}
            try:
                answer = _whole(call(*args, **kwargs))
            except Exception as error:
                self._note({**line, "raised": type(error).__name__})
                raise
            self._note({**line, "answer": digest(answer)})
            return cast("T", iter(answer) if isinstance(answer, _Listed) else answer)

        return noted


class _Listed(list[Any]):
    """What an iterator yielded, read at once so that it can be noted."""


def _whole(answer: Any) -> Any:
    return _Listed(answer) if isinstance(answer, Iterator) else answer


def _plain(value: Any) -> Any:
    """Return the value as JSON types, without loss of what distinguishes two values."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(json.dumps(_plain(item), sort_keys=True) for item in value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _atom(value)


def _atom(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"a {type(value).__name__} crosses a port and cannot be recorded")
