"""Reads the text of a job description into a JobSpec, or says everything that is wrong with it, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from headrace.domain.errors import BadJob
from headrace.domain.job import JobSpec
from headrace.domain.job_faults import listed, model_faults
from headrace.domain.yaml_tree import MAX_DEPTH, MAX_NODES, NOWHERE, Fault, Tree, read_tree


def parse_job(text: str) -> JobSpec:
    """Return the job that YAML or JSON text describes.

    Raises BadJob, and nothing else, with every fault found: `line 7, column 12, compute.count: ...`.
    """
    return _job_of(read_tree(text))


def job_from_mapping(value: Mapping[str, Any]) -> JobSpec:
    """Return the job of a mapping already read from JSON. Raises BadJob as `parse_job` does, without places."""
    tree = Tree(value=dict(value))
    if _is_too_much(value):
        text = f"the job holds more than {MAX_NODES:,} values or is nested more than {MAX_DEPTH} deep"
        raise BadJob((text,))
    return _job_of(tree)


def _job_of(tree: Tree) -> JobSpec:
    if tree.stopped:
        raise BadJob(listed(tree.faults))
    if not isinstance(tree.value, dict):
        refusal = Fault(NOWHERE, "the job is not a mapping; begin with `name: my-job`")
        raise BadJob(listed(tree.faults or [refusal]))
    try:
        job = JobSpec.model_validate(tree.value)
    except ValidationError as error:
        raise BadJob(listed((*tree.faults, *model_faults(error, tree)))) from None
    if tree.faults:
        raise BadJob(listed(tree.faults))
    return job


def _is_too_much(value: object) -> bool:
    level, nodes = [value], 0
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        level = [child for one in level for child in _children(one)]
        if nodes + len(level) > MAX_NODES:
            return True
    return bool(level)


def _children(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema of a job description, for editors; what needs two fields to judge is in words only."""
    schema = JobSpec.model_json_schema()
    inputs = schema["properties"]["data"]
    schema["properties"]["data"] = {
        "description": "One input, or a list of named ones.",
        "anyOf": [{"$ref": "#/$defs/DataInput"}, inputs],
    }
    address = schema["$defs"]["Results"]["properties"]["to"]
    schema["properties"]["results"] = {
        "description": "An address, or one with what reaches a bucket that is not ours.",
        "anyOf": [address, {"$ref": "#/$defs/Results"}],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "headrace job", **schema}
