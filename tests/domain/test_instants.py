"""Instants as text keep their order and their zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.instants import from_text, seconds_between, to_text

INSTANTS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(INSTANTS)
def test_text_gives_the_instant_back_to_the_millisecond(instant: datetime) -> None:
    assert abs(from_text(to_text(instant)) - instant) < timedelta(milliseconds=1)


@given(INSTANTS, INSTANTS)
def test_texts_sort_as_instants_follow_each_other(one: datetime, other: datetime) -> None:
    if one <= other:
        assert to_text(one) <= to_text(other)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="names no time zone"):
        from_text("2026-01-01T12:00:00")


def test_seconds_between_is_negative_backwards() -> None:
    assert seconds_between("2026-01-01T12:00:10.000Z", "2026-01-01T12:00:00.500Z") == -9.5
