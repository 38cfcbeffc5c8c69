"""A step has one name in every spelling: state, module, substitution; and every error a machine names exists."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from headrace.domain import errors

CHECKOUT = Path(__file__).parents[2]
MACHINES = {path.name.removesuffix(".asl.json"): path for path in (CHECKOUT / "statemachines").glob("*.asl.json")}
HANDLERS = {path.stem for path in (CHECKOUT / "functions/headrace/handlers").glob("[a-z]*.py")}


def states(machine: str) -> dict[str, dict[str, Any]]:
    return dict(json.loads(MACHINES[machine].read_text())["States"])


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def lambda_states() -> dict[str, str]:
    """Return state name to substitution, of every state in any machine that invokes a function."""
    found = {}
    for machine in MACHINES:
        for name, state in states(machine).items():
            if ":lambda:invoke" in state.get("Resource", ""):
                found[name] = state["Arguments"]["FunctionName"]
    return found


def test_the_machines_are_the_three_of_the_design() -> None:
    assert sorted(MACHINES) == ["decommission", "fleet", "salvage", "training_run"]


def test_a_state_calls_the_function_of_its_own_name() -> None:
    assert {name: call for name, call in lambda_states().items() if call != f"${{{name}}}"} == {}


def test_every_state_has_its_handler_and_every_handler_its_state() -> None:
    called_by_states = {snake(name) for name in lambda_states()}
    called_by_none = {name for name in HANDLERS if name.startswith("on_")}
    assert called_by_states | called_by_none == HANDLERS
    assert not called_by_states & called_by_none


def test_every_handler_offers_step_of_a_request_and_a_cloud() -> None:
    for name in sorted(HANDLERS):
        tree = ast.parse(source(name))
        steps = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "step"]
        assert [[arg.arg for arg in step.args.args] for step in steps] == [["request", "cloud"]], name


def test_every_handler_offers_its_step_to_lambda_in_one_line() -> None:
    glue = {
        name: [ast.unparse(node) for node in ast.parse(source(name)).body if is_named(node, "handler")]
        for name in sorted(HANDLERS)
    }
    assert {name: lines for name, lines in glue.items() if lines != ["handler = entry(step)"]} == {}


def source(name: str) -> str:
    return (CHECKOUT / f"functions/headrace/handlers/{name}.py").read_text()


def is_named(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]


def test_every_error_that_a_machine_names_is_a_class_of_the_domain() -> None:
    named = {
        error
        for path in MACHINES.values()
        for block in re.findall(r'"ErrorEquals": \[([^\]]*)\]', path.read_text())
        for error in re.findall(r'"([^"]+)"', block)
    }
    ours = {error for error in named if "." not in error}
    assert ours
    assert {error for error in ours if not hasattr(errors, error)} == set()


def test_machines_stay_readable() -> None:
    assert {name: len(path.read_text().splitlines()) for name, path in MACHINES.items()}
    assert [name for name, path in MACHINES.items() if len(path.read_text().splitlines()) > 150] == []
