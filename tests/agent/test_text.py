"""Text in events: valid, bounded."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.text import cleaned, first_line, json_bytes, last_part, short

ANY_TEXT = st.text(st.characters(), max_size=3000)


@given(ANY_TEXT, st.integers(4, 1024), st.integers(16, 2048))
def test_short_text_is_valid_and_within_both_bounds(text: str, characters: int, encoded: int) -> None:
    kept = short(text, characters, encoded)
    assert len(kept) <= characters
    assert json_bytes(kept) <= encoded
    assert json.loads(json.dumps(kept).encode()) == kept
    kept.encode("utf-8")


@given(ANY_TEXT, st.integers(1, 4096), st.integers(16, 8192))
def test_the_last_part_is_an_end_of_the_text_within_both_bounds(text: str, characters: int, encoded: int) -> None:
    kept = last_part(text, characters, encoded)
    assert cleaned(text).endswith(kept)
    assert len(kept) <= characters
    assert json_bytes(kept) <= encoded


def test_text_that_fits_is_left_as_it_is() -> None:
    assert short("a reason é") == "a reason é"
    assert last_part("the end", 4096, 8192) == "the end"


def test_bytes_that_are_no_utf_8_and_nul_become_question_marks() -> None:
    assert cleaned(b"\xff\x00a".decode("utf-8", "surrogateescape")) == "??a"


def test_an_error_of_many_lines_is_told_by_its_first() -> None:
    assert first_line(ValueError("why\nDebug source: ...")) == "why"
