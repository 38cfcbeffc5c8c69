"""Before anything is started a signal ends the command; afterwards signals are only counted."""

from __future__ import annotations

import os
import signal

import pytest

from headrace.cli.interrupts import CAUSES, Interrupts


@pytest.mark.parametrize("number", CAUSES)
def test_a_signal_before_the_hold_ends_the_command(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", CAUSES)
def test_signals_after_the_hold_are_counted(number: signal.Signals) -> None:
    with Interrupts() as interrupts:
        interrupts.hold()
        for _ in range(3):
            os.kill(os.getpid(), number)
        assert interrupts.count == 3
        assert interrupts.cause == CAUSES[number]


def test_handlers_are_as_before_when_all_is_over() -> None:
    before = [signal.getsignal(number) for number in CAUSES]
    with Interrupts():
        assert [signal.getsignal(number) for number in CAUSES] != before
    assert [signal.getsignal(number) for number in CAUSES] == before


def test_a_signal_that_was_ignored_stays_ignored_as_nohup_wants() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_pause_ends_with_the_next_signal() -> None:
    with Interrupts() as interrupts:
        interrupts.hold()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        before = signal.signal(signal.SIGALRM, lambda _number, _frame: os.kill(os.getpid(), signal.SIGINT))
        try:
            interrupts.pause(60)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert interrupts.count == 1
