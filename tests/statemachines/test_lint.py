"""The machines keep every rule of the lint: what the validator lets through is found here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.domain import errors
from headrace.domain.errors import HeadraceError
from tests.statemachines.asl_lint import lint

CHECKOUT = Path(__file__).parents[2]
MACHINES = sorted((CHECKOUT / "statemachines").glob("*.asl.json"))
FUNCTIONS = {
    path.stem.title().replace("_", "") for path in (CHECKOUT / "functions/headrace/handlers").glob("[a-z]*.py")
}
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HeadraceError)}


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.name)
def test_the_lint_finds_nothing(path: Path) -> None:
    text = path.read_text()
    findings = lint(
        path.name,
        json.loads(text),
        known_functions=FUNCTIONS,
        known_machines={"FleetMachine", "SalvageMachine", "DecommissionMachine"},
        known_errors=ERRORS,
        text=text,
    )
    assert findings == []
