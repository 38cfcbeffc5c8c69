"""The templates as wholes: clean under every linter, within AWS's limits, and as they were when last looked at."""

from __future__ import annotations

import ast
import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cfnlint.api import ManualArgs, lint

from tests.conftest import Golden
from tests.infra.assembly import Assembly

TEMPLATE_BYTES_MAX = 1024**2
RESOURCES_MAX = 500
LAMBDA_UNZIPPED_BYTES_MAX = 250 * 1024**2
TYPES_ONLY = "mypy_boto3_"
"""Imported for annotations alone."""
KNOWN = {
    "E3601": (
        r"'\{% \$limits\.\w+ %\}' is not of type 'number' at 'States/\w+/(Timeout|Heartbeat)Seconds'",
        "JSONata may give time-outs; the linter's schema knows numbers only. asl-validator and the interpreter check.",
    ),
    "W3005": (
        r"'(Functions|GuardProvider)\w+' dependency already enforced by a 'GetAtt' at 'Resources/\w+/Properties/Role'",
        "The CDK adds the dependency of a function on its role; it does no harm.",
    ),
}
"""What cfn-lint finds and is right to be left, with the reason."""


@pytest.fixture(params=["defaults", "options"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    found: Assembly = request.getfixturevalue(request.param)
    return found


def readable(template: dict[str, Any]) -> dict[str, Any]:
    """Return the template with documents as objects, since the linter cannot read them as text within JSON."""
    copied = copy.deepcopy(template)
    for resource in copied["Resources"].values():
        if resource["Type"] == "AWS::SSM::Document":
            resource["Properties"]["Content"] = yaml.safe_load(resource["Properties"]["Content"])
    return copied


def test_cfn_lint_finds_nothing_but_what_is_known(assembly: Assembly) -> None:
    found = lint(json.dumps(readable(assembly.template)), config=ManualArgs(regions=[assembly.region]))
    told = [f"{one.rule.id}: {one.message}" for one in found]
    unknown = [
        one for one in told if not any(re.fullmatch(f"{rule}: {text}", one) for rule, (text, _) in KNOWN.items())
    ]
    assert unknown == []
    assert {one.rule.id for one in found} == set(KNOWN), "a known finding that is gone is to be forgotten"


def test_cdk_nag_finds_nothing_that_is_not_answered(assembly: Assembly) -> None:
    assert assembly.violations() == []


def test_cdk_nag_finds_a_fault_that_is_planted(assemblies: Path) -> None:
    planted = Assembly.read(assemblies / "planted", "planted-us-east-1")
    assert "AwsSolutions-S10 at planted-us-east-1/Open/Resource" in planted.violations()


def test_every_answer_to_a_finding_gives_a_reason(assembly: Assembly) -> None:
    metadata = json.loads((assembly.folder / f"{assembly.name}.metadata.json").read_text())
    entries = [entry for entries in metadata.values() for entry in entries]
    answers = [entry["data"] for entry in entries if entry["type"] == "aws:cdk:acknowledged-rules"]
    reasons = [reason for answer in answers for reason in answer.values()]
    assert len(reasons) > 50
    assert [reason for reason in reasons if len(reason.split()) < 5] == []


def test_the_template_is_within_the_limits_of_cloudformation(assembly: Assembly) -> None:
    size_bytes = len(json.dumps(assembly.template, separators=(",", ":")))
    assert size_bytes < TEMPLATE_BYTES_MAX / 2
    assert len(assembly.resources) < RESOURCES_MAX / 2


def test_code_and_layer_are_within_the_limits_of_lambda(defaults: Assembly) -> None:
    code, layer = folder_bytes(defaults.asset("headrace")), folder_bytes(defaults.asset("python"))
    assert 100_000 < code < 4 * 1024**2
    assert code + layer < LAMBDA_UNZIPPED_BYTES_MAX / 2


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_layer_has_everything_that_functions_import(defaults: Assembly) -> None:
    there = {path.name.removesuffix(".py") for path in (defaults.asset("python") / "python").iterdir()}
    imported = {
        name.partition(".")[0]
        for path in (defaults.asset("headrace") / "headrace").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in names_of(node)
    }
    foreign = {one for one in imported - set(sys.stdlib_module_names) - {"headrace"} if not one.startswith(TYPES_ONLY)}
    assert foreign >= {"boto3", "pydantic"}
    assert foreign - there == set()


def names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module)] if isinstance(node, ast.ImportFrom) else []


def without_hashes(text: str) -> str:
    """Return the template's text without what changes with every change of code."""
    text = re.sub(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}", r"\1-HASH", text)
    return re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)


def test_the_default_stack_is_as_it_was(defaults: Assembly, golden: Golden) -> None:
    golden("infra/defaults.json", without_hashes(json.dumps(defaults.template, indent=1, sort_keys=True)) + "\n")


def test_the_stack_with_every_option_has_the_resources_it_had(options: Assembly, golden: Golden) -> None:
    lines = sorted(f"{resource['Type']} {id_}" for id_, resource in options.resources.items())
    golden("infra/options.txt", without_hashes("\n".join(lines)) + "\n")
