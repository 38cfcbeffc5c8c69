"""The published schemas say what the models say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.build_schemas import TARGET, schemas


@pytest.mark.parametrize("name", sorted(schemas()))
def test_each_published_schema_is_that_of_its_model(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(TARGET / name, schemas()[name])


def test_nothing_else_is_published() -> None:
    assert sorted(path.name for path in TARGET.iterdir()) == sorted(schemas())


def test_the_job_schema_takes_one_input_or_a_list_of_them() -> None:
    data = json.loads(schemas()["job.json"])["properties"]["data"]
    assert [one.get("type", one.get("$ref")) for one in data["anyOf"]] == ["#/$defs/DataInput", "array"]


def test_each_event_body_stands_beside_its_detail_type() -> None:
    branches = json.loads(schemas()["event-bodies.json"])["oneOf"]
    by_type = {one["properties"]["detail-type"]["const"]: one["properties"]["body"]["$ref"] for one in branches}
    assert by_type["Job Done"] == "#/$defs/JobDone"
    assert len(by_type) == len(branches)
