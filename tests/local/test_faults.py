"""Faults are declared in words, and words that mean nothing are refused with those that do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.local.faults import Faults, Shortage, UnknownFault


def test_shortages_and_denied_buckets_are_read() -> None:
    faults = Faults.parse(("capacity:i4i.large", "capacity:us-east-1a=2", "denied:results-bucket"))
    assert faults.shortages == (Shortage("i4i.large"), Shortage("us-east-1a", 2))
    assert faults.denied_buckets == {"results-bucket"}


def test_the_tightest_shortage_counts() -> None:
    faults = Faults.parse(("capacity:i4i.large=3", "capacity:us-east-1a=1"))
    assert faults.available("i4i.large", "us-east-1a") == 1
    assert faults.available("i4i.large", "us-east-1b") == 3
    assert faults.available("i4i.xlarge", "us-east-1b") is None


def test_a_star_is_short_of_everything() -> None:
    assert Faults.parse(("capacity:*",)).available("p5.48xlarge", "eu-west-1c") == 0


def test_a_bucket_is_denied_by_name_or_by_what_it_serves() -> None:
    faults = Faults.parse(("denied:results-bucket",))
    assert faults.denies("results-bucket")
    assert faults.denies("results-2fa-1", serves="results")
    assert not faults.denies("data-2fa-1", serves="data")
    assert not faults.denies("results-bucket-2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("latency:5", "no kind of fault called 'latency'"),
        ("", "no kind of fault"),
        ("capacity:", "neither an instance type, nor a zone"),
        ("capacity:i4i", "'i4i' is neither"),
        ("capacity:i4i.large=few", "'few' is not a number"),
        ("capacity:i4i.large=-1", "'-1' is not a number"),
        ("denied:A_b", "'A_b' is not a bucket name"),
        ("denied:", "'' is not a bucket name"),
    ],
)
def test_anything_else_is_refused_with_the_forms_there_are(text: str, why: str) -> None:
    with pytest.raises(UnknownFault, match=why) as refused:
        Faults.parse((text,))
    assert "capacity:*" in str(refused.value)


@given(st.text(max_size=40))
def test_no_text_gives_another_error(text: str) -> None:
    try:
        faults = Faults.parse((text,))
    except UnknownFault:
        return
    assert faults.shortages or faults.denied_buckets
