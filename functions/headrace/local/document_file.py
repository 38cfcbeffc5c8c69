"""One SSM document as a file: its script, its parameters, and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headrace.domain.errors import HeadraceError

TIMEOUT_SECONDS = 3600.0
"""Execution time-out of a step that names none (aws-facts.md section 3)."""
_REFERENCE = re.compile(r"\{\{\s*([A-Za-z0-9]+)\s*\}\}")


class DocumentRefused(HeadraceError):
    """A document is unknown, or was given parameters that it does not allow; nothing was run."""


@dataclass(frozen=True)
class Document:
    """A document of one shell step, whose parameters arrive as environment variables."""

    name: str
    script: str
    timeout_seconds: float
    parameters: Mapping[str, Mapping[str, Any]]

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters as variables `SSM_<name>`, defaults filled in.

        Raises DocumentRefused for unknown, missing and disallowed ones, as SSM does.
        """
        if unknown := sorted(set(given) - set(self.parameters)):
            raise DocumentRefused(f"document {self.name} has no parameter {unknown[0]!r}; it has {self._known()}")
        return {f"SSM_{name}": self._value(name, rule, given.get(name)) for name, rule in self.parameters.items()}

    def _value(self, name: str, rule: Mapping[str, Any], given: str | None) -> str:
        value = rule.get("default") if given is None else given
        if value is None:
            raise DocumentRefused(f"document {self.name} needs the parameter {name!r}")
        # SSM resolves {{ssm:...}} inside a value, so no value may hold it (aws-facts.md section 3).
        if "{{" in value or not re.fullmatch(str(rule.get("allowedPattern", ".*")), value, re.DOTALL):
            raise DocumentRefused(
                f"document {self.name}: the parameter {name} may not be {value!r}; "
                f"it must match {rule.get('allowedPattern')!r} and hold no '{{{{'"
            )
        return str(value)

    def _known(self) -> str:
        return ", ".join(self.parameters) or "none"


def read_document(folder: Path, name: str) -> Document:
    """Return the document of that name. Raises DocumentRefused when there is none or it is of another form."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml"))) or "none"
        raise DocumentRefused(f"there is no document {name!r}; there are: {known}")
    content = yaml.safe_load(path.read_text())
    steps = content.get("mainSteps", [])
    if content.get("schemaVersion") != "2.2" or [one.get("action") for one in steps] != ["aws:runShellScript"]:
        raise DocumentRefused(f"document {name}: only schema 2.2 with one step aws:runShellScript is run here")
    parameters = content.get("parameters", {})
    for parameter, rule in parameters.items():
        if rule.get("interpolationType") != "ENV_VAR" or "allowedPattern" not in rule:
            raise DocumentRefused(f"document {name}: parameter {parameter} needs ENV_VAR and an allowedPattern")
    inputs = steps[0]["inputs"]
    script = _REFERENCE.sub(r"${SSM_\1}", "\n".join(inputs["runCommand"]))
    return Document(name, script, float(inputs.get("timeoutSeconds", TIMEOUT_SECONDS)), parameters)
