"""A machine is gone when a listing says so, or when it is too old for a listing not to show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.domain.presence import HIDDEN_SECONDS, is_gone
from tests.domain.rows import node_row

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("life", "gone"), [("terminated", True), ("stopping", False), ("running", False)])
def test_what_is_listed_is_believed(life: str, gone: bool) -> None:
    assert is_gone(node_row(), life, NOON) is gone
    assert is_gone(node_row(), life, NOON + timedelta(days=1)) is gone


def test_what_is_not_listed_may_only_be_hidden_while_it_is_young() -> None:
    """R011, R025: "not found" is no proof of death."""
    assert not is_gone(node_row(), None, NOON + timedelta(seconds=HIDDEN_SECONDS))
    assert is_gone(node_row(), None, NOON + timedelta(seconds=HIDDEN_SECONDS + 1))
