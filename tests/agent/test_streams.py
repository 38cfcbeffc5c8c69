"""How many streams copy at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace_agent.streams import FIRST, LOOK_SECONDS, REST_SECONDS, Streams


def run(streams: Streams, seconds: float, rate_of: Callable[[int], float]) -> list[int]:
    """Let bytes come at a rate that depends on the streams, as each tick asks for; return what was wanted each time."""
    total_bytes, wanted = 0.0, []
    for tick in range(int(seconds / LOOK_SECONDS) + 1):
        streams.came(int(total_bytes), tick * LOOK_SECONDS)
        wanted.append(streams.wanted)
        total_bytes += rate_of(streams.wanted) * LOOK_SECONDS
    return wanted


@pytest.mark.parametrize(
    ("answer_seconds", "body_seconds", "wanted"),
    [(0.001, 0.0002, 12), (0.06, 0.001, 248), (0.06, 0.06, 16), (0.005, 0.5, 8), (9.0, 0.001, 1000)],
)
def test_the_longer_streams_wait_between_two_bodies_the_more_there_are(
    answer_seconds: float, body_seconds: float, wanted: int
) -> None:
    streams = Streams(1000)
    streams.delayed(answer_seconds, body_seconds)
    assert streams.wanted == wanted


def test_where_each_stream_brings_the_same_however_many_there_are_all_are_used_within_seconds() -> None:
    wanted = run(Streams(128), 3.0, lambda streams: 90e6 * streams)
    assert wanted[-1] == 128


def test_where_more_streams_bring_no_more_a_trial_is_taken_back_and_not_repeated_soon() -> None:
    wanted = run(Streams(128), REST_SECONDS, lambda _: 1e9)
    assert wanted.count(2 * FIRST) == 1
    assert wanted[-1] == FIRST
    assert 2 * FIRST in run(Streams(128), 2 * REST_SECONDS, lambda _: 1e9)[len(wanted) :]


def test_no_more_streams_than_bring_more_are_kept() -> None:
    assert run(Streams(128), 5.0, lambda streams: 90e6 * min(streams, 32))[-1] == 32


def test_there_are_never_more_than_the_most() -> None:
    streams = Streams(4)
    streams.delayed(1.0, 0.001)
    assert set(run(streams, 30.0, lambda streams: 90e6 * streams)) == {4}
