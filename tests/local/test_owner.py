"""A process that drives runs is known by its number and its start, so that a recycled number is not taken for it."""

from __future__ import annotations

import os
import subprocess
import sys

from headrace.local.owner import is_alive, owner_of, this_process
from tests.waiting import wait_until


def test_this_process_lives() -> None:
    assert this_process().startswith(f"{os.getpid()}:")
    assert is_alive(this_process())


def test_the_same_number_with_another_start_is_another_process() -> None:
    pid, _, ticks = this_process().partition(":")
    assert not is_alive(f"{pid}:{int(ticks) + 1}")
    assert not is_alive(f"{pid}:{ticks}0")


def test_a_process_that_ended_does_not_live_even_while_nobody_collected_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = owner_of(child.pid)
        assert owner is not None
        assert is_alive(owner)
        child.kill()
        wait_until(lambda: not is_alive(owner))
        assert child.returncode is None, "the zombie was not collected yet"
    assert not is_alive(owner)


def test_text_that_is_no_owner_does_not_live() -> None:
    assert [is_alive(text) for text in ("", "x:1", ":", "-1:2", "12")] == [False] * 5
