"""Work that stands still in its midst: the world goes on meanwhile, and never at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headrace.local.loop import SimulatedLoop
from headrace.local.simulated.pausing import PausableWork
from headrace.local.simulated.site import START


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    """Yield a loop on which time is virtual."""
    loop = SimulatedLoop(START)
    yield loop
    loop.close()


def test_the_world_goes_on_while_the_work_stands_still(loop: SimulatedLoop) -> None:
    told: list[str] = []

    def work() -> str:
        told.append("begins")
        pausable.pause(30)
        told.append(f"goes on at {loop.time():g} s")
        assert asyncio.get_running_loop() is loop
        return "done"

    pausable = PausableWork(loop, work)
    loop.call_later(10, told.append, "meanwhile")
    assert loop.run_until_complete(pausable.result()) == "done"
    assert told == ["begins", "meanwhile", "goes on at 30 s"]


def test_what_the_work_raises_reaches_whoever_awaits_it(loop: SimulatedLoop) -> None:
    def work() -> None:
        pausable.pause(1)
        raise LookupError("nothing there")

    pausable = PausableWork(loop, work)
    with pytest.raises(LookupError, match="nothing there"):
        loop.run_until_complete(pausable.result())


def test_work_that_nobody_awaits_any_more_ends_where_it_stands(loop: SimulatedLoop) -> None:
    told: list[str] = []

    def work() -> None:
        try:
            pausable.pause(1000)
            told.append("went on")
        finally:
            told.append("ended")

    async def give_up() -> None:
        task = asyncio.ensure_future(pausable.result())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    pausable = PausableWork(loop, work)
    loop.run_until_complete(give_up())
    assert told == ["ended"]
