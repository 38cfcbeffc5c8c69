"""JSON that travels is that of the standard library, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.wire import is_within, read_json, write_json

TEXTS = st.text(st.characters(), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
HALF_A_PAIR = {"tail": "\ud83d"}


@given(value=VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert read_json(write_json(value)) == json.loads(write_json(value)) == value


@given(value=VALUES)
def test_what_the_standard_library_writes_is_read(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@given(value=VALUES, limit_bytes=st.integers(0, 400))
def test_a_size_is_that_of_the_standard_library(value: Any, limit_bytes: int) -> None:
    assert is_within(value, limit_bytes) == (len(json.dumps(value)) <= limit_bytes)


@pytest.mark.parametrize("value", ["\x7f" * 100, HALF_A_PAIR])
def test_what_grows_most_when_it_is_escaped_is_measured_right(value: Any) -> None:
    size_bytes = len(json.dumps(value))
    assert is_within(value, size_bytes)
    assert not is_within(value, size_bytes - 1)


def test_half_of_a_surrogate_pair_is_written_as_an_escape_and_read_back() -> None:
    assert read_json(write_json(HALF_A_PAIR)) == HALF_A_PAIR


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nope"])
def test_what_is_no_json_is_refused_as_ever(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_json(text)
