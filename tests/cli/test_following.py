"""A run is followed to its end whatever signals come, and each signal does what was announced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headrace.cli.following import follow
from headrace.cli.interrupts import Interrupts
from headrace.client.client import Client
from headrace.domain.plan import Plan
from headrace.report.end_page import Ended
from headrace.report.view import Change, Snapshot
from tests.client.fake_site import FakeSite, Step, admit, end, enter, wait

Scripted = Callable[..., FakeSite]


class Recorder:
    """A screen that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def plan(self, plan: Plan) -> None:
        self.told.append(f"plan {plan.job_name}")

    def show(self, snapshot: Snapshot, changes: Sequence[Change]) -> None:
        assert snapshot.row.job_name == "digits"
        self.told += [change.kind for change in changes]

    def say(self, text: str) -> None:
        self.told.append(text)

    def hide(self) -> None:
        self.told.append("hide")

    def end(self, ended: Ended) -> None:
        self.told.append(ended.receipt.status)


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Interrupts:
    """Return a count that steps of the script raise, and pauses that take no time."""
    made = Interrupts()
    monkeypatch.setattr(made, "pause", lambda _seconds: None)
    return made


def follow_run(site: FakeSite, job_file: Path, interrupts: Interrupts) -> tuple[Ended | None, list[str]]:
    screen = Recorder()
    with Client(site.home, open_site=lambda _home, _faults: site) as client:
        ended = follow(client.launch(client.prepare(job_file)), screen, interrupts)
    return ended, screen.told


def press(interrupts: Interrupts) -> Step:
    def step(_site: FakeSite) -> None:
        interrupts.count += 1
        interrupts.cause = "Ctrl-C"

    return step


def test_a_run_is_told_from_its_start_to_its_end(scripted: Scripted, job_file: Path, interrupts: Interrupts) -> None:
    site = scripted(wait, admit, enter("admitted"), enter("admitted", "ending", "ended"), end("SUCCEEDED"))
    ended, told = follow_run(site, job_file, interrupts)
    assert ended is not None
    assert ended.receipt.status == "SUCCEEDED"
    assert ended.results_folder == str(job_file.parent / "out" / ended.receipt.run_id)
    assert told == ["run", "phase", "phase", "ended"]


def test_the_first_signal_asks_for_the_end_and_the_run_is_followed_on(
    scripted: Scripted, job_file: Path, interrupts: Interrupts
) -> None:
    site = scripted(admit, press(interrupts), *[wait] * 10_000)
    ended, told = follow_run(site, job_file, interrupts)
    assert ended is not None
    assert ended.receipt.status == "STOPPED"
    assert site.stops == ["Ctrl-C"]
    assert told[1] == (
        f"stopping {ended.receipt.run_id}: training is asked to stop, machines are released ... "
        "(press Ctrl-C again to hide progress; the release goes on)"
    )
    assert told[-1] == "ended"


def test_a_signal_before_the_run_is_recorded_stops_it_as_soon_as_it_is(
    scripted: Scripted, job_file: Path, interrupts: Interrupts
) -> None:
    site = scripted(press(interrupts), wait, wait, admit, *[wait] * 10_000)
    ended, told = follow_run(site, job_file, interrupts)
    assert ended is not None
    assert ended.receipt.status == "STOPPED"
    assert site.stops == ["Ctrl-C"]
    assert told[0].startswith("stopping the run: ")


def test_further_signals_change_the_view_only(scripted: Scripted, job_file: Path, interrupts: Interrupts) -> None:
    site = scripted(*[press(interrupts)] * 5, admit, *[wait] * 10_000)
    ended, told = follow_run(site, job_file, interrupts)
    assert ended is not None
    assert ended.receipt.status == "STOPPED"
    assert site.stops == ["Ctrl-C"]
    assert told.count("hide") == 1
    assert "progress is hidden; every machine is still being released" in told


def test_a_stop_that_fails_is_told_and_asked_for_again(
    scripted: Scripted, job_file: Path, interrupts: Interrupts, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = scripted(admit, press(interrupts), *[wait] * 100_000)
    works, faults = site.stop_run, [OSError("no table")]

    def stop(run_id: str, by: str) -> None:
        if faults:
            raise faults.pop()
        works(run_id, by)

    monkeypatch.setattr(site, "stop_run", stop)
    ended, told = follow_run(site, job_file, interrupts)
    assert ended is not None
    assert ended.receipt.status == "STOPPED"
    assert "the stop failed and is asked for again: OSError: no table" in told


def test_a_run_that_is_never_recorded_ends_without_a_receipt(
    scripted: Scripted, job_file: Path, interrupts: Interrupts
) -> None:
    assert follow_run(scripted(wait, wait), job_file, interrupts) == (None, [])
