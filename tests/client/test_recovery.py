"""Runs whose process was killed are ended by whoever comes next, and living runs are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.client import Client
from headrace.client.opening import open_run_table
from headrace.domain.errors import HeadraceError
from headrace.local.owner import this_process
from tests.client.fake_site import RUN_ID, FakeSite, end

Scripted = Callable[..., FakeSite]
DEAD = "1:0"
"""Process 1 lives, but it did not start at tick 0 of the clock: another process had its number."""


def recover(site: FakeSite) -> tuple[str, ...]:
    with Client(site.home, open_site=lambda _home, _faults: site) as client:
        return client.recover_dead_runs()


def test_a_run_whose_process_died_is_ended(scripted: Scripted) -> None:
    site = scripted(owner_process=DEAD)
    site.admit()
    assert recover(site) == (RUN_ID,)
    assert site.recovered == [RUN_ID]
    assert recover(site) == ()


@pytest.mark.parametrize("owner", [this_process(), None], ids=["this process", "nobody"])
def test_a_run_that_is_driven_is_left_alone(scripted: Scripted, owner: str | None) -> None:
    site = scripted(owner_process=owner)
    site.admit()
    assert recover(site) == ()
    assert site.opened == 0


def test_a_run_that_has_ended_is_left_alone(scripted: Scripted) -> None:
    site = scripted(owner_process=DEAD)
    site.admit()
    end("SUCCEEDED")(site)
    assert recover(site) == ()


def test_a_run_that_cannot_be_ended_now_is_told_and_left_for_the_next_time(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = scripted(owner_process=DEAD)
    site.admit()

    def fail(_run_id: str) -> None:
        raise HeadraceError("a machine does not die")

    monkeypatch.setattr(site, "recover", fail)
    with pytest.warns(UserWarning, match="a machine does not die"):
        assert recover(site) == ()
    monkeypatch.undo()
    assert recover(site) == (RUN_ID,)


def test_a_home_without_runs_needs_nothing(home: Path) -> None:
    table = open_run_table(home)
    assert list(table.rows()) == []
    table.close()
    assert not home.exists()
