"""A path is reset when its requests wait and none comes back, while the other path to the same bytes goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headrace_agent.path_watch import STALL_SECONDS, PathState, PathWatch, Stalls

NQN = "nqn.2026-01.io.headrace:run-1:sealed-0"


def at(*, live: bool = True, ended: int = 10, waiting: int = 1, nqn: str = NQN) -> PathState:
    return PathState(nqn, live, ended, waiting)


def seen(dead: list[PathState], other: PathState) -> list[str]:
    """Return what is said to stall at the last of looks that are a stall's length apart."""
    stalls = Stalls()
    told: list[str] = []
    for number, one in enumerate(dead):
        told = stalls.look({"nvme0": one, "nvme1": other}, number * STALL_SECONDS)
    return told


def test_a_path_on_which_nothing_ends_stalls_while_another_lives() -> None:
    assert seen([at()] * 3, at(waiting=0)) == ["nvme0"]


@pytest.mark.parametrize(
    ("states", "other"),
    [
        ([at()] * 2, at(waiting=0)),
        ([at(), at(ended=11), at(ended=12)], at(waiting=0)),
        ([at(), at(waiting=0), at()], at(waiting=0)),
        ([at(live=False)] * 3, at(waiting=0)),
        ([at()] * 3, at(waiting=0, live=False)),
        ([at()] * 3, at(waiting=0, nqn=f"{NQN}1")),
        ([at()] * 3, at()),
    ],
    ids=["just begun", "slow", "idle between", "known already", "other not live", "other bytes", "both silent"],
)
def test_no_path_is_reset_that_works_or_that_nothing_replaces(states: list[PathState], other: PathState) -> None:
    assert seen(states, other) == []


def test_a_stalled_path_is_reset_by_the_kernels_own_switch(tmp_path: Path) -> None:
    for name, waiting in {"nvme0": 2, "nvme1": 0}.items():
        folder = tmp_path / "class/nvme-fabrics/ctl" / name
        (folder / "nvme0c0n1").mkdir(parents=True)
        (folder / "nvme0c0n1/stat").write_text(f" 7 0 56 3 0 0 0 0 {waiting} 4 3\n")
        (folder / "subsysnqn").write_text(f"{NQN}\n")
        (folder / "state").write_text("live\n")
    watch = PathWatch(tmp_path)
    assert [watch.look(moment) for moment in (0, 1, 1 + STALL_SECONDS)] == [[], [], ["nvme0"]]
    switch = tmp_path / "class/nvme-fabrics/ctl/nvme0/reset_controller"
    end = time.monotonic() + 10
    while not switch.exists() and time.monotonic() < end:
        time.sleep(0.001)
    assert switch.read_text() == "1"
    assert not (tmp_path / "class/nvme-fabrics/ctl/nvme1/reset_controller").exists()
