"""Amounts are written as people read them."""

from __future__ import annotations

import pytest

from headrace.domain.amounts import bytes_text, duration_text, rate_text, usd_text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_500, "1.5 kB"),
        (2_860_000_000, "2.86 GB"),
        (999_600_000, "1 GB"),
        (210_900 * 10**9, "211 TB"),
        (7_680 * 10**15, "7,680 PB"),
    ],
)
def test_bytes_have_three_digits_and_a_unit(amount: float, text: str) -> None:
    assert bytes_text(amount) == text


def test_a_rate_is_bytes_per_second() -> None:
    assert rate_text(12.5e9) == "12.5 GB/s"


@pytest.mark.parametrize(("usd", "text"), [(1388.544, "1,388.54 USD"), (0.0384, "0.0384 USD")])
def test_money_shows_cents_or_less_when_it_is_little(usd: float, text: str) -> None:
    assert usd_text(usd) == text


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (570, "9.5 min"), (21_600, "6 h"), (3_648, "60.8 min")])
def test_durations_choose_their_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
