"""Reads JSON objects field by field, so that a wrong one is named with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ConfigError(Exception):
    """A file that the agent was given is not what the agent can work with; the text names the place."""


@dataclass(frozen=True)
class Fields:
    """One JSON object and where it stands, for example `config.json: train`.

    Every method raises ConfigError when the field is absent or of another type. Unknown fields are left alone, so
    that a newer control plane may add optional ones.
    """

    values: Mapping[str, Any]
    where: str

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Fields:
        """Return the fields of a JSON object given as text."""
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"{where} is not JSON: {error}") from error
        return cls.of(values, where)

    @classmethod
    def of(cls, values: Any, where: str) -> Fields:
        """Return the fields of a JSON object already decoded."""
        if not isinstance(values, dict):
            raise ConfigError(f"{where} must be an object, found {_kind(values)}")
        return cls(values, where)

    def text(self, name: str) -> str:
        """Return a text field."""
        return str(self._typed(name, str, "text"))

    def text_or_none(self, name: str) -> str | None:
        """Return a text field, or None when it is absent or null."""
        return None if self.values.get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        """Return a whole number; true and false are not numbers."""
        value = self._typed(name, (int, float), "a whole number")
        if isinstance(value, bool) or int(value) != value:
            raise ConfigError(f"{self.where}: {name} must be a whole number, found {value!r}")
        return int(value)

    def number(self, name: str) -> float:
        """Return a number."""
        value = self._typed(name, (int, float), "a number")
        if isinstance(value, bool):
            raise ConfigError(f"{self.where}: {name} must be a number, found {value!r}")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return true or false."""
        return bool(self._typed(name, bool, "true or false"))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self._typed(name, list, "a list")
        if not all(isinstance(value, str) for value in values):
            raise ConfigError(f"{self.where}: {name} must hold texts only")
        return tuple(values)

    def text_map(self, name: str) -> dict[str, str]:
        """Return an object whose values are texts."""
        values = self._typed(name, dict, "an object")
        if not all(isinstance(value, str) for value in values.values()):
            raise ConfigError(f"{self.where}: {name} must hold texts only")
        return dict(values)

    def section(self, name: str) -> Fields | None:
        """Return a nested object, or None when it is absent or null."""
        if self.values.get(name) is None:
            return None
        return Fields.of(self.values[name], f"{self.where}: {name}")

    def needed_section(self, name: str) -> Fields:
        """Return a nested object."""
        return Fields.of(self._typed(name, dict, "an object"), f"{self.where}: {name}")

    def sections(self, name: str) -> tuple[Fields, ...]:
        """Return a list of nested objects; absent is empty."""
        values = self.values.get(name, [])
        if not isinstance(values, list):
            raise ConfigError(f"{self.where}: {name} must be a list, found {_kind(values)}")
        return tuple(Fields.of(value, f"{self.where}: {name}[{index}]") for index, value in enumerate(values))

    def _typed(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        if name not in self.values:
            raise ConfigError(f"{self.where}: {name} is missing")
        value = self.values[name]
        if not isinstance(value, kinds):
            raise ConfigError(f"{self.where}: {name} must be {wanted}, found {_kind(value)}")
        return value


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
