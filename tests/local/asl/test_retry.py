"""Retry arithmetic, for every retrier there can be."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.local.asl.definition import Retrier
from headrace.local.asl.errors import StateFailure
from headrace.local.asl.retry import Attempts, delay_seconds


def _retrier(**changes: object) -> Retrier:
    fields: dict[str, object] = {
        "errors": ("E",),
        "interval": 1.0,
        "max_attempts": 3,
        "backoff_rate": 2.0,
        "max_delay": None,
        "full_jitter": False,
    }
    return Retrier(**(fields | changes))  # type: ignore[arg-type]


_ANY = st.builds(
    _retrier,
    interval=st.integers(1, 1000).map(float),
    backoff_rate=st.floats(1, 10),
    max_delay=st.none() | st.integers(1, 5000).map(float),
)


@given(retrier=_ANY, attempt=st.integers(0, 400))
def test_delays_never_shrink_and_never_pass_the_cap(retrier: Retrier, attempt: int) -> None:
    now, later = (delay_seconds(retrier, at, Random(1)) for at in (attempt, attempt + 1))  # noqa: S311
    cap = float("inf") if retrier.max_delay is None else retrier.max_delay
    assert min(retrier.interval, cap) <= now <= later <= cap


@given(retrier=_ANY, attempt=st.integers(0, 40), seed=st.integers())
def test_full_jitter_draws_between_nothing_and_the_delay(retrier: Retrier, attempt: int, seed: int) -> None:
    jittered = _retrier(
        interval=retrier.interval, backoff_rate=retrier.backoff_rate, max_delay=retrier.max_delay, full_jitter=True
    )
    whole = delay_seconds(retrier, attempt, Random(seed))  # noqa: S311
    assert 0 <= delay_seconds(jittered, attempt, Random(seed)) <= whole  # noqa: S311


def test_full_jitter_draws_evenly() -> None:
    source = Random(3)  # noqa: S311
    drawn = [delay_seconds(_retrier(interval=10.0, full_jitter=True), 0, source) for _ in range(4000)]
    assert sum(drawn) / len(drawn) == pytest.approx(5, abs=0.2)
    assert sum(delay < 2.5 for delay in drawn) / len(drawn) == pytest.approx(0.25, abs=0.03)


def test_only_the_first_matching_retrier_is_asked() -> None:
    attempts = Attempts([_retrier(max_attempts=0), _retrier(errors=("States.ALL",))], Random(1))  # noqa: S311
    assert attempts.next_delay(StateFailure("E")) is None
    assert attempts.next_delay(StateFailure("Other")) == 1
    assert attempts.total == 1
