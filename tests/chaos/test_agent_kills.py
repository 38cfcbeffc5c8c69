"""The agent dies between two steps of copy or results: no byte is wrong then, and nothing that was saved is lost.

Some points here; `make chaos` strikes all of them, 100 times.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.surroundings import S3
from tests.chaos.agent_kills import kill_at, surroundings
from tests.chaos.failpoints import FAILPOINTS

CHOSEN = (
    "a small file is in place and not recorded",
    "a span is written and not recorded",
    "a large file is in place and not recorded",
    "a result is uploaded and not proven",
    "results are written down",
    "the manifest is written",
)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with surroundings() as one:
        yield one


@pytest.mark.parametrize("name", CHOSEN)
def test_no_byte_is_wrong_and_nothing_is_lost(s3: S3, tmp_path: Path, name: str) -> None:
    (point,) = (one for one in FAILPOINTS if one.name == name)
    ending = kill_at(point, 1, s3, tmp_path)
    assert (ending.wrong, ending.lost) == ((), ())
    assert ending.was_hit


def test_every_failpoint_names_a_function_of_the_agent_and_no_two_the_same() -> None:
    for point in FAILPOINTS:
        module, *steps = point.function.split(".")
        owner: object = importlib.import_module(f"headrace_agent.{module}")
        for step in steps:
            owner = getattr(owner, step)
        assert callable(owner), point.name
    assert len({point.name for point in FAILPOINTS}) == len(FAILPOINTS)
