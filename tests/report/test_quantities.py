"""Numbers read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.report.quantities import (
    bytes_text,
    clock_text,
    count_text,
    duration_text,
    instant_text,
    rate_text,
    usd_text,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (75, "75 B"), (999, "999 B"), (999.6, "1 kB"), (134_775, "135 kB"), (1_250_000, "1.25 MB")],
)
def test_bytes_have_three_digits_and_a_decimal_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text


@given(st.integers(0, 10**18))
def test_bytes_never_need_more_than_three_digits_before_the_point(count: int) -> None:
    number, unit = bytes_text(count).split(" ")
    assert float(number) < 1000
    assert unit in ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def test_a_rate_is_bytes_per_second() -> None:
    assert rate_text(50_000_000) == "50 MB/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (185, "3 min 5 s"),
        (7_500, "2 h 5 min"),
        (7_200, "2 h"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_duration_names_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("usd", "text"), [(0.00041, "0.0004 USD"), (1.5, "1.50 USD"), (1388.5, "1,388.50 USD")])
def test_small_amounts_are_not_shown_as_free(usd: float, text: str) -> None:
    assert usd_text(usd) == text


def test_one_thing_is_singular() -> None:
    assert (count_text(1, "file"), count_text(1797, "file")) == ("1 file", "1,797 files")


def test_an_instant_is_shown_as_time_of_day() -> None:
    assert clock_text("2026-11-30T02:00:09.500Z") == "02:00:09"
    assert clock_text("soon") == "soon"


def test_an_instant_of_another_day_has_its_date() -> None:
    assert instant_text("2026-12-01T02:00:09Z", "2026-11-30T23:00:00Z") == "2026-12-01 02:00:09"
    assert instant_text("2026-11-30T23:00:09Z", "2026-11-30T23:00:00Z") == "23:00:09"
