"""A synthesised stack: its template with references resolved, its assets, and what was found in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.infra.references import References


@dataclass(frozen=True)
class Assembly:
    """One stack of a cloud assembly."""

    folder: Path
    name: str
    region: str
    template: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, name: str) -> Assembly:
        """Return the stack of that id, which is the stack's name and its region."""
        template = json.loads((folder / f"{name}.template.json").read_text())
        return cls(folder, name, "-".join(name.split("-")[-3:]), template)

    @property
    def stack(self) -> str:
        """Return the stack's name."""
        return self.name.removesuffix(f"-{self.region}")

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Return every resource by its logical id."""
        return dict(self.template["Resources"])

    @cached_property
    def references(self) -> References:
        """Return what resolves references in this template."""
        return References(self.resources, self.region)

    def of_type(self, type_: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the resources of a type, references resolved, by logical id."""
        return {
            id_: self.references.resolved(resource.get("Properties", {}))
            for id_, resource in self.resources.items()
            if resource["Type"] == type_
        }

    def only(self, type_: str) -> dict[str, Any]:
        """Return the properties of the one resource of a type."""
        (found,) = self.of_type(type_).values()
        return found

    def by_name(self, type_: str, property_: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the resources of a type, by one of them without the stack's name before it."""
        found = self.of_type(type_).values()
        return {str(one[property_]).removeprefix(f"{self.stack}-"): one for one in found if property_ in one}

    def violations(self) -> list[str]:
        """Return what cdk-nag and the CDK itself found, as `rule at construct`."""
        path = self.folder / "validation-report.json"
        reports = json.loads(path.read_text())["pluginReports"] if path.exists() else []
        return [
            f"{violation['ruleName']} at {construct['constructPath']}"
            for report in reports
            for violation in report["violations"]
            for construct in violation["violatingConstructs"]
        ]

    def asset(self, member: str) -> Path:
        """Return the folder of the asset that has this member at its top."""
        return next(path for path in self.folder.glob("asset.*") if (path / member).is_dir())
