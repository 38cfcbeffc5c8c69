"""The Systems Manager documents: short, with values only in the environment, one line that calls the agent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace_agent.commands import build_parser

FOLDER = Path(__file__).parents[2] / "agent" / "documents"
DOCUMENTS = sorted(FOLDER.iterdir())
COMMANDS = {
    "preflight": "headrace-agent preflight",
    "seal-dataset": "headrace-agent seal",
    "release-node": "headrace-agent release",
    "configure-storage": "headrace-agent configure",
    "stage-dataset": "headrace-agent stage",
    "configure-compute": "headrace-agent configure",
    "train-job": "headrace-agent train",
    "checkpoint-job": "headrace-agent notice",
    "salvage-results": "headrace-agent salvage",
}
LINES_MAX = 40
BYTES_MAX = 64 * 1024
"""What Systems Manager takes."""


@pytest.fixture(params=DOCUMENTS, ids=lambda path: path.stem)
def document(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def content(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


def test_there_is_one_document_for_each_thing_that_nodes_are_told() -> None:
    assert {path.name for path in DOCUMENTS} == {f"{name}.yaml" for name in COMMANDS}


def test_it_is_short_and_opens_with_what_it_is_for(document: Path) -> None:
    text = document.read_text()
    assert len(text.splitlines()) <= LINES_MAX
    assert len(text.encode()) <= BYTES_MAX
    assert text.startswith("# ")


def test_it_is_of_schema_2_2_and_has_only_what_that_schema_knows(document: Path) -> None:
    read = content(document)
    assert read["schemaVersion"] == "2.2"
    assert set(read) == {"schemaVersion", "description", "parameters", "mainSteps"}


def test_its_parameters_are_the_run_and_its_configuration_checked_and_never_pasted(document: Path) -> None:
    parameters = content(document)["parameters"]
    assert set(parameters) == {"RunId", "ConfigReference"}
    for rule in parameters.values():
        assert set(rule) == {"type", "description", "allowedPattern", "interpolationType"}
        assert (rule["type"], rule["interpolationType"]) == ("String", "ENV_VAR")
    assert "{{" not in document.read_text()


def test_its_one_step_is_one_line_that_the_agent_understands(document: Path) -> None:
    (step,) = content(document)["mainSteps"]
    assert step["action"] == "aws:runShellScript"
    assert step["inputs"]["runCommand"] == [COMMANDS[document.stem]]
    program, *arguments = COMMANDS[document.stem].split()
    assert program == "headrace-agent"
    assert build_parser().parse_args(arguments).command == arguments[0]
    assert re.fullmatch(r"[A-Za-z0-9_-]+", step["name"])


def test_its_execution_time_out_is_set_on_purpose(document: Path) -> None:
    (step,) = content(document)["mainSteps"]
    timeout = step["inputs"]["timeoutSeconds"]
    assert isinstance(timeout, str)
    assert 60 <= int(timeout) <= 3600


@pytest.mark.parametrize(
    ("name", "value", "is_allowed"),
    [
        ("RunId", "imagenet-20261130-0148", True),
        ("RunId", "a" * 63, True),
        ("RunId", "a" * 64, False),
        ("RunId", "Run", False),
        ("RunId", "a;reboot", False),
        ("RunId", "a\nb", False),
        ("RunId", "", False),
        ("ConfigReference", "s3://headrace-runs/runs/imagenet-1/", True),
        ("ConfigReference", "s3://headrace-runs/runs/imagenet-1", False),
        ("ConfigReference", "s3://headrace-runs/runs/../x/", False),
        ("ConfigReference", "s3://b/$(id)/", False),
        ("ConfigReference", "https://headrace-runs/runs/a/", False),
        ("ConfigReference", "s3://headrace-runs/runs/a/\n", False),
    ],
)
def test_its_patterns_admit_runs_and_nothing_that_a_shell_would_act_on(
    document: Path, name: str, value: str, is_allowed: bool
) -> None:
    pattern = content(document)["parameters"][name]["allowedPattern"]
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    assert bool(re.fullmatch(pattern, value)) == is_allowed
