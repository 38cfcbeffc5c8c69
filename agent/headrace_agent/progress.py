"""Reads what the command reports about itself: the newest complete JSON line of $HEADRACE_PROGRESS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace_agent.text import short

READ_BYTES = 256 * 1024
METRICS_MAX = 20
NAME_CHARACTERS = 64
VALUE_CHARACTERS = 128
COUNT_MAX = 10**15
STEP_NAMES = {"step": "step", "total_steps": "total_steps", "total": "total_steps"}


class ProgressFile:
    """Follows one JSON Lines file; `malformed` counts complete lines that were no JSON object."""

    def __init__(self, path: Path) -> None:
        self.malformed = 0
        self._path = path
        self._offset = 0
        self._rest = b""

    def newest(self) -> dict[str, Any] | None:
        """Return the body of a Job Progress for the newest line since the last call, or None."""
        found = None
        for line in self._new_lines():
            value = _parsed(line)
            if value is None:
                self.malformed += 1
            else:
                found = value
        return None if found is None else body_of(found)

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as stream:
                size = stream.seek(0, 2)
                self._skip_to_recent(size)
                stream.seek(self._offset)
                data = stream.read(READ_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-READ_BYTES:]
        return [line for line in lines if line.strip()]

    def _skip_to_recent(self, size: int) -> None:
        """Begin again in a file that was written anew; leave out old lines when the file grew by more than is read."""
        if size < self._offset:
            self._offset, self._rest = 0, b""
        if size - self._offset > READ_BYTES:
            self._offset, self._rest = size - READ_BYTES, b""


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def body_of(line: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a Job Progress: counts as integers, every other value as text among the metrics."""
    body: dict[str, Any] = {}
    metrics: dict[str, str] = {}
    for name, value in line.items():
        count = _count(value)
        if name in STEP_NAMES and count is not None:
            body[STEP_NAMES[name]] = count
        elif name == "message" and isinstance(value, str):
            body["message"] = short(value)
        elif len(metrics) < METRICS_MAX:
            metrics[short(name, NAME_CHARACTERS, 2 * NAME_CHARACTERS)] = short(
                _as_text(value), VALUE_CHARACTERS, 2 * VALUE_CHARACTERS
            )
    return {**body, "metrics": metrics}


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    return whole if whole == value and 0 <= whole <= COUNT_MAX else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
