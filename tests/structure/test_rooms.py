"""Each room of the source imports only what it may, so that no room grows into another."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
HEADRACE = CHECKOUT / "functions" / "headrace"
STDLIB = set(sys.stdlib_module_names)
IMPURE = {"os", "time", "random", "subprocess", "socket", "threading", "tempfile", "secrets", "asyncio", "pathlib"}
OURS = ("headrace", "headrace_agent")

STUBS = (
    *("cloudformation", "dynamodb", "ec2", "events", "secretsmanager"),
    *("service_quotas", "ssm", "stepfunctions", "sts"),
)
PURE_STDLIB = STDLIB - IMPURE
ALLOWED: dict[str, set[str]] = {
    "domain": PURE_STDLIB | {"pydantic", "pydantic_core", "yaml", "headrace.domain"},
    "ports.py": STDLIB | {"headrace.domain"},
    "handlers": STDLIB | {"pydantic", "headrace.domain", "headrace.ports", "headrace.handlers"},
    "aws": STDLIB
    | {"boto3", "botocore", "headrace.domain", "headrace.ports", "headrace.aws"}
    | {f"mypy_boto3_{one}" for one in STUBS},
    "local": STDLIB
    | {
        "pydantic",
        "pydantic_core",
        "yaml",
        "jlens",
        "headrace.domain",
        "headrace.ports",
        "headrace.handlers",
        "headrace.local",
    }
    | {"headrace.aws.objects"},
    "cli": STDLIB | {"click", "rich", "pydantic", "headrace"},
    "client": STDLIB | {"pydantic", "headrace"},
    "report": STDLIB | {"rich", "pydantic", "headrace"},
}
AGENT = STDLIB | {"obstore", "botocore", "headrace_agent"}
INFRA = STDLIB | {"aws_cdk", "constructs", "infra"}


GLUE = {"handlers/_entry.py": {"aws_lambda_powertools", "headrace.aws.cloud"}}
"""What one module may import inside a function, where it costs nothing until it is called."""


def imports_of(path: Path, *, is_deep: bool = True) -> Iterator[str]:
    """Yield the full name of everything a module imports, at any depth of its code, or at its top only."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if is_deep else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"relative import in {path.name}"


def is_allowed(name: str, allowed: set[str]) -> bool:
    """Tell whether the name or one of its parents is allowed; of our own packages the parent must be named."""
    parts = name.split(".")
    prefixes = {".".join(parts[: length + 1]) for length in range(len(parts))}
    return bool(prefixes & allowed)


def modules_of(room: str) -> list[Path]:
    """Return the files of a room, which is a package or a single module."""
    single = HEADRACE / room if room.endswith(".py") else HEADRACE / f"{room}.py"
    return [single] if single.is_file() else sorted((HEADRACE / room).rglob("*.py"))


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    modules = modules_of(room)
    assert modules, f"the room {room} is empty"
    wrong = [
        f"{path.relative_to(CHECKOUT)}: {name}"
        for path in modules
        for name in imports_of(path)
        if not is_allowed(name, ALLOWED[room] | GLUE.get(path.relative_to(HEADRACE).as_posix(), set()))
    ]
    assert wrong == []


def test_the_glue_is_imported_when_it_is_called_and_not_before() -> None:
    for module, only_inside in GLUE.items():
        assert [name for name in imports_of(HEADRACE / module, is_deep=False) if is_allowed(name, only_inside)] == []


def test_the_agent_shares_no_code_with_the_control_plane() -> None:
    modules = sorted((CHECKOUT / "agent" / "headrace_agent").rglob("*.py"))
    wrong = [f"{path.name}: {name}" for path in modules for name in imports_of(path) if not is_allowed(name, AGENT)]
    assert modules
    assert wrong == []


def test_boot_files_take_the_standard_library_alone() -> None:
    modules = sorted((CHECKOUT / "agent" / "boot").rglob("*.py"))
    assert modules
    assert [name for path in modules for name in imports_of(path) if not is_allowed(name, STDLIB)] == []


def test_infra_learns_what_there_is_by_listing_files() -> None:
    modules = sorted((CHECKOUT / "infra").rglob("*.py"))
    wrong = [f"{path.name}: {name}" for path in modules for name in imports_of(path) if not is_allowed(name, INFRA)]
    assert modules
    assert wrong == []


def test_only_contract_and_e2e_tests_take_both_packages() -> None:
    mixed = [
        path.relative_to(CHECKOUT).as_posix()
        for path in sorted((CHECKOUT / "tests").rglob("*.py"))
        if {name.split(".")[0] for name in imports_of(path)} >= set(OURS)
    ]
    assert [path for path in mixed if not path.startswith(("tests/contract/", "tests/e2e/"))] == []


def test_every_module_belongs_to_a_room() -> None:
    known = {*ALLOWED, "__init__.py", "__main__.py", "data", "schemas", "__pycache__", "py.typed"}
    found = {path.name for path in HEADRACE.iterdir()}
    assert {name for name in found if name not in known and name.removesuffix(".py") not in known} == set()


def test_no_module_is_named_for_nothing() -> None:
    nothing = {"utils", "util", "helpers", "helper", "common", "misc", "constants"}
    rooms = ("functions", "agent", "infra", "tests")
    sources = [path for room in rooms for path in (CHECKOUT / room).rglob("*.py")]
    assert [path for path in sources if path.stem.strip("_") in nothing] == []


def test_an_import_that_is_not_allowed_is_seen(tmp_path: Path) -> None:
    module = tmp_path / "bad.py"
    module.write_text("def f():\n    from headrace.local import site\n    import boto3\n")
    assert [name for name in imports_of(module) if not is_allowed(name, ALLOWED["handlers"])] == [
        "headrace.local.site",
        "boto3",
    ]
