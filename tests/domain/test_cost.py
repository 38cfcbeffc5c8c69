"""Money is added exactly: the parts make the total, to the millionth of a dollar."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.cost import NodeUse, bill, micro_usd, usd_for

SECONDS = st.floats(0, 10**8, allow_nan=False)
RATES = st.floats(0, 10**4, allow_nan=False)
USES = st.lists(st.builds(NodeUse, st.text(max_size=5), SECONDS, RATES), max_size=30)


@given(USES)
def test_the_parts_make_the_total(uses: list[NodeUse]) -> None:
    made = bill(uses)
    assert sum(line.micro_usd for line in made.lines) == made.micro_usd
    assert [line.node_id for line in made.lines] == [use.node_id for use in uses]


@given(USES)
def test_the_total_is_within_half_a_millionth_per_machine_of_the_exact_sum(uses: list[NodeUse]) -> None:
    exact = sum((Fraction(repr(u.seconds)) * Fraction(repr(u.usd_per_hour)) / 3600 for u in uses), Fraction(0))
    assert abs(bill(uses).micro_usd - exact * 10**6) <= Fraction(len(uses), 2)


@given(SECONDS, RATES)
def test_one_machine_is_rounded_once(seconds: float, rate: float) -> None:
    exact = Fraction(repr(seconds)) * Fraction(repr(rate)) * 10**6 / 3600
    assert abs(micro_usd(seconds, rate) - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("seconds", "rate", "usd"), [(3600, 10.848, 10.85), (1, 55.04, 0.02), (0, 5.0, 0.0), (5400, 0.01, 0.02)]
)
def test_amounts_are_shown_to_the_cent(seconds: float, rate: float, usd: float) -> None:
    assert usd_for(seconds, rate) == usd


def test_a_thousand_short_uses_are_not_rounded_away() -> None:
    made = bill([NodeUse(f"n{n}", 10, 0.0384) for n in range(1_000)])
    assert made.cents == 11
    assert made.usd == 0.107


def test_a_bill_of_nothing_is_nothing() -> None:
    assert (bill([]).lines, bill([]).usd, bill([]).cents) == ((), 0.0, 0)


def test_a_machine_that_ends_before_it_starts_is_an_error() -> None:
    with pytest.raises(ValueError, match="its end is before its start"):
        bill([NodeUse("n", -1, 1)])
