"""Text of others shows all it holds and does nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.report.console import text_of
from headrace.report.end_page import Ended, end_page
from headrace.report.plain_text import plain, plain_log_line
from headrace.report.run_page import run_page
from tests.report import samples


@given(st.text(st.characters(codec=None, categories=None), max_size=60))
def test_plain_text_is_one_line_without_any_control_character(text: str) -> None:
    kinds = {unicodedata.category(character) for character in plain(text)}
    assert kinds.isdisjoint({"Cc", "Cs", "Zl", "Zp"})


@given(st.text("abc xyz äöü 数 [red]\\", max_size=60))
def test_plain_text_leaves_what_is_harmless_as_it_is(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("one\ntwo", "one\\ntwo"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b2J", "\\x9b2J"),
        ("a\ud800b", "a\\ud800b"),
    ],
)
def test_what_has_no_picture_of_its_own_is_written_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[32mloss\x1b[0m 0.3\n", "loss 0.3"),
        ("  1%|#   |\r 50%|##  |\r100%|####|\r\n", "100%|####|"),
        ("a\tb", "a    b"),
        ("\x1b]0;title\x07text", "\\x1b]0;title\\x07text"),
    ],
)
def test_a_log_line_loses_colours_and_overwritten_text_and_shows_the_rest(line: str, shown: str) -> None:
    assert plain_log_line(line) == shown


def test_no_page_lets_hostile_text_through() -> None:
    run = samples.row(("staging", 2), status="FAILED", failure=samples.HOSTILE, stop_requested_by=samples.HOSTILE)
    job = {"step": 1, "metrics": {samples.HOSTILE: samples.HOSTILE}, "message": samples.HOSTILE}
    node = samples.node("compute", 0, state="failed", failure=samples.HOSTILE, activity=samples.HOSTILE, job=job)
    receipt = samples.receipt(reason=samples.HOSTILE, status="FAILED", not_executed=(samples.HOSTILE,), job_name="a")
    failed = node.model_copy(update={"job": {"log_tail": samples.HOSTILE * 2}})
    pages = [
        text_of(run_page(samples.snapshot(run, node, second=5)), 200),
        text_of(end_page(Ended(receipt, (failed,), samples.HOSTILE)), 200),
    ]
    for page in pages:
        assert plain(page.replace("\n", "")) == page.replace("\n", "")
        assert "[red]x[/red]" in page
        assert ":smile:" in page
