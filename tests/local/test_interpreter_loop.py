"""The simulated loop: time that moves only when nothing else can."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.local.loop import LoopClock, SimulationDeadlock, simulated_loop

_START = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_year_passes_in_no_time_and_to_the_second() -> None:
    loop = simulated_loop(_START)
    clock = LoopClock(loop)
    loop.run_until_complete(asyncio.sleep(365 * 86_400 + 0.25))
    assert clock.now() == _START + timedelta(days=365, seconds=0.25)
    assert clock.monotonic() == 365 * 86_400 + 0.25
    loop.close()


def test_timers_fire_in_the_order_of_their_times() -> None:
    loop = simulated_loop(_START)
    fired: list[tuple[str, float]] = []

    async def after(seconds: float, name: str) -> None:
        await asyncio.sleep(seconds)
        fired.append((name, loop.time()))

    async def all_of_them() -> None:
        await asyncio.gather(after(3, "c"), after(1, "a"), after(2, "b"), after(0, "now"))

    loop.run_until_complete(all_of_them())
    assert fired == [("now", 0), ("a", 1), ("b", 2), ("c", 3)]
    loop.close()


def test_waiting_for_nothing_is_a_deadlock_and_not_a_hang() -> None:
    loop = simulated_loop(_START)
    waiting = loop.create_future()
    loop.run_until_complete(asyncio.sleep(90))
    with pytest.raises(SimulationDeadlock, match=r"deadlock at 2030-01-01T00:01:30\+00:00"):
        loop.run_until_complete(waiting)
    loop.close()


def test_the_start_must_know_its_time_zone_and_is_kept_in_utc() -> None:
    with pytest.raises(ValueError, match="time zone"):
        simulated_loop(datetime(2030, 1, 1))  # noqa: DTZ001
    east = simulated_loop(datetime(2030, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert LoopClock(east).now() == _START
    assert LoopClock(east).now().tzinfo is UTC
    east.close()


def test_the_clock_of_a_real_loop_is_the_machine_s() -> None:
    loop = asyncio.new_event_loop()
    clock = LoopClock(loop)
    before = datetime.now(UTC)
    assert before <= clock.now() <= before + timedelta(minutes=1)
    assert clock.monotonic() <= clock.monotonic()
    loop.close()
