"""Unquoted words mean what JSON says they mean, and are text otherwise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.yaml_words import json_as_yaml, plain_value


@pytest.mark.parametrize(
    "word", ["yes", "no", "on", "off", "1_000", "0o17", "017", "0x1f", "1:30", "2026-11-30", "1.2.3", "="]
)
def test_words_that_only_yaml_1_1_reads_as_something_else_are_text(word: str) -> None:
    assert plain_value(word) == word


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("FALSE", False), ("null", None), ("~", None), ("", None), ("12", 12), ("-3", -3)],
)
def test_words_of_json_have_their_meaning(word: str, value: object) -> None:
    assert plain_value(word) is value or plain_value(word) == value


@pytest.mark.parametrize(("word", "value"), [("1e3", 1000.0), (".5", 0.5), ("2.", 2.0), ("1.5e-3", 0.0015)])
def test_decimals_are_numbers(word: str, value: float) -> None:
    assert plain_value(word) == value


@pytest.mark.parametrize("word", [".inf", "-.INF", ".NaN", "NaN", "Infinity", "-Infinity", "1e400", "1" * 31])
def test_numbers_that_no_job_can_use_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="number"):
        plain_value(word)


@given(st.integers(min_value=-(10**15), max_value=10**15) | st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_json_writes_is_read_back(number: float) -> None:
    assert plain_value(json.dumps(number)) == number


def test_text_that_is_not_json_is_left_alone() -> None:
    assert json_as_yaml("{a: \tb") == "{a: \tb"


def test_json_keeps_its_lines() -> None:
    assert json_as_yaml('{\t"a":\n\t1}') == '{ "a":\n 1}'
