"""What a command reports about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.progress import READ_BYTES, ProgressFile, body_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=100), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["step", "total", "total_steps", "message"]) | st.text(max_size=100)


def append(path: Path, text: str) -> None:
    with path.open("a") as stream:
        stream.write(text)


def test_the_newest_complete_line_counts_and_each_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = ProgressFile(path)
    assert progress.newest() is None
    append(path, '{"step": 1}\n{"step": 2, "total": 10, "loss": 0.25, "message": "on"}\n{"step": 3')
    assert progress.newest() == {"step": 2, "total_steps": 10, "message": "on", "metrics": {"loss": "0.25"}}
    assert progress.newest() is None
    append(path, ', "total_steps": 10}\n')
    assert progress.newest() == {"step": 3, "total_steps": 10, "metrics": {}}


def test_malformed_lines_are_counted_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_bytes(b'{"step": 1}\nnot json\n[1]\n\xff\xfe\n\n' + b"[" * 5000 + b"\n")
    progress = ProgressFile(path)
    assert progress.newest() == {"step": 1, "metrics": {}}
    assert progress.malformed == 4


def test_a_file_that_is_written_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = ProgressFile(path)
    append(path, '{"step": 100, "note": "long"}\n')
    progress.newest()
    path.write_text('{"step": 1}\n')
    assert progress.newest() == {"step": 1, "metrics": {}}


def test_a_flood_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    lines = (2 * READ_BYTES) // 12
    path.write_text("".join(f'{{"step": {number}}}\n' for number in range(lines)))
    assert ProgressFile(path).newest() == {"step": lines - 1, "metrics": {}}


@pytest.mark.parametrize(
    ("value", "count"),
    [(3, 3), (3.0, 3), (3.5, None), (-1, None), (True, None), ("3", None), (float("nan"), None), (10**16, None)],
)
def test_a_step_is_a_whole_number_from_zero_and_anything_else_is_a_metric(value: Any, count: int | None) -> None:
    body = body_of({"step": value})
    assert body.get("step") == count
    assert ("step" in body["metrics"]) == (count is None)


@given(st.dictionaries(NAMES, JSON, max_size=60))
def test_any_object_becomes_a_body_that_fits_into_an_event_and_holds_no_float(line: dict[str, Any]) -> None:
    body = body_of(line)
    assert len(json.dumps(body)) < 12_000
    assert all(isinstance(value, str) for value in body["metrics"].values())
    assert all(type(body.get(name, 0)) is int for name in ("step", "total_steps"))
