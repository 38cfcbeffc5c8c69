"""An event loop in a thread does work for other threads, and its end leaves nothing that waits."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.local.loop_thread import LoopThread


def test_work_is_done_on_the_loop_s_own_thread() -> None:
    thread = LoopThread("worker")
    thread.start()

    async def name() -> str:
        return threading.current_thread().name

    assert thread.run(name()) == "worker"
    thread.stop()


def test_work_that_takes_too_long_is_cancelled() -> None:
    thread, cancelled = LoopThread("worker"), threading.Event()
    thread.start()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(TimeoutError):
        thread.run(waits(), timeout_seconds=0)
    assert cancelled.wait(20)
    thread.stop()


def test_stopping_cancels_what_waits_and_may_be_repeated() -> None:
    thread, ended = LoopThread("worker"), threading.Event()
    thread.start()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def begin() -> None:
        thread.kept = asyncio.create_task(waits())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    thread.run(begin())
    thread.stop()
    assert ended.is_set()
    thread.stop()
    assert thread.loop.is_closed()


def test_a_loop_that_never_ran_can_be_stopped() -> None:
    thread = LoopThread("worker")
    thread.stop()
    assert thread.loop.is_closed()
