"""How fast S3 lets itself be asked: halved when it is busy, one more for each round of answers."""

from __future__ import annotations

import threading

from headrace_agent.pace import Pace


class Seconds:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def answered(pace: Pace, *, was_busy: bool) -> int:
    pace.begin()
    pace.end(was_busy=was_busy)
    return pace.limit


def test_a_busy_answer_halves_the_limit_once_a_second() -> None:
    clock = Seconds()
    pace = Pace(64, clock)
    assert [answered(pace, was_busy=True) for _ in range(3)] == [32, 32, 32]
    clock.now += 1.0
    assert answered(pace, was_busy=True) == 16


def test_one_request_is_always_allowed() -> None:
    clock = Seconds()
    pace = Pace(4, clock)
    for _ in range(10):
        clock.now += 1.0
        answered(pace, was_busy=True)
    assert pace.limit == 1


def test_answers_raise_the_limit_again_up_to_all_streams() -> None:
    pace = Pace(4, Seconds())
    answered(pace, was_busy=True)
    assert [answered(pace, was_busy=False) for _ in range(3)] == [2, 2, 3]
    assert [answered(pace, was_busy=False) for _ in range(20)][-1] == 4


def test_a_request_beyond_the_limit_waits_for_one_to_end() -> None:
    pace = Pace(1, Seconds())
    pace.begin()
    second = threading.Thread(target=pace.begin)
    second.start()
    second.join(0.05)
    assert second.is_alive()
    pace.end(was_busy=False)
    second.join(10)
    assert not second.is_alive()
