"""The agent is installable alone, with what the whole product says about it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from headrace_agent import VERSION

ROOT = Path(__file__).parents[2]


def project(path: str) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((ROOT / path).read_text())["project"]
    return read


def test_it_needs_two_libraries_only_and_in_the_range_of_the_whole_product() -> None:
    agent, whole = project("agent/pyproject.toml"), project("pyproject.toml")
    names = {requirement.split(">")[0] for requirement in agent["dependencies"]}
    assert names == {"obstore", "botocore"}
    obstore = next(one for one in agent["dependencies"] if one.startswith("obstore"))
    assert obstore in whole["dependencies"]
    boto3 = next(one for one in whole["dependencies"] if one.startswith("boto3"))
    assert boto3.replace("boto3", "botocore") in agent["dependencies"]


def test_command_version_and_python_are_those_of_the_whole_product() -> None:
    agent, whole = project("agent/pyproject.toml"), project("pyproject.toml")
    assert agent["scripts"] == {"headrace-agent": whole["scripts"]["headrace-agent"]}
    assert agent["version"] == whole["version"] == VERSION
    assert agent["requires-python"] == whole["requires-python"]
