"""A left volume on a machine: brought up only if it was ever made, and put away whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from headrace_agent import left_volume
from headrace_agent.action_failed import ActionFailed
from headrace_agent.actions import Action, Unless
from headrace_agent.leftovers import Served, leftovers, served_as
from headrace_agent.release_commands import release_actions
from headrace_agent.runner import Doing
from headrace_agent.salvage import run_salvage
from headrace_agent.spool import Task
from headrace_agent.work import Work
from tests.agent.fabric_configs import HOSTS, machine
from tests.agent.private_volumes import private, salvager
from tests.agent.test_machine import put
from tests.agent.works import process_node

UNSTOPPED = Doing()


@dataclass
class Kernel:
    """A machine whose answers a test gives; `done` is what was done to it."""

    states: dict[str, bool | Exception]
    fails_at: str = "nothing"
    done: list[str] = field(default_factory=list)

    def execute(self, actions: Sequence[Action], _say: Callable[[str], object], doing: Doing = UNSTOPPED) -> int:
        for action in actions:
            if self.fails_at in str(action) and not doing.is_stopped():
                raise ActionFailed(f"{action}: exit code 1: it is broken")
            self.done.append(str(action).split("  #", 1)[0])
        return len(actions)

    def holds(self, unless: Unless) -> bool:
        answer = self.states[unless.kind]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def was(self, command: str) -> bool:
        return any(one.startswith(command) for one in self.done)


@pytest.fixture
def on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], dict[str, Any]]:
    """Return what salvages v5 on a machine with that kernel, and returns what is said of it."""
    node = replace(process_node(tmp_path, "storage"), process_node=False)
    work = Work(node, Task("salvage-1", "salvage", salvager()), lambda *_: None)
    monkeypatch.setattr(left_volume, "machine_for", lambda *_: machine(2))
    monkeypatch.setattr(left_volume, "served_as", lambda nqn: Served(nqn, tuple(HOSTS[:1]), (1, 2)))

    def salvaged(kernel: Kernel) -> dict[str, Any]:
        monkeypatch.setattr(left_volume, "execute", kernel.execute)
        monkeypatch.setattr(left_volume, "holds", kernel.holds)
        outcome = run_salvage(work)
        assert outcome
        return outcome.body

    return salvaged


NOTHING = {"ranks": [0], "files": 0, "bytes": 0}


def test_what_was_never_made_into_an_array_is_nothing_and_its_door_is_closed(
    on_a_machine: Callable[[Kernel], dict[str, Any]],
) -> None:
    kernel = Kernel({"begun": False})
    assert on_a_machine(kernel) == NOTHING
    assert kernel.was(f"rm /sys/kernel/config/nvmet/ports/1/subsystems/{private('c0')}")
    assert not kernel.was("mdadm --assemble")


def test_an_array_that_was_never_formatted_is_nothing_and_is_stopped_again(
    on_a_machine: Callable[[Kernel], dict[str, Any]],
) -> None:
    kernel = Kernel({"begun": True, "formatted": False})
    assert on_a_machine(kernel) == NOTHING
    assert not kernel.was("mount")
    assert kernel.done[-1] == "mdadm --stop /dev/md/run-1-v5"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("--verbose", "its array does not come up"),
        ("mount -t xfs", "its file system cannot be mounted"),
        ("still", "the compute node cannot be cut off from it"),
    ],
)
def test_what_is_there_and_does_not_come_up_is_a_trouble_and_is_put_away(
    on_a_machine: Callable[[Kernel], dict[str, Any]], broken: str, told: str
) -> None:
    kernel = Kernel({"begun": True, "formatted": True}, fails_at=broken)
    body = on_a_machine(kernel)
    assert (body["ranks"], body["files"]) == ([], 0)
    assert body["trouble"].startswith(f"rank 0: nothing more is saved of volume v5: {told}: ")
    assert body["trouble"].endswith("exit code 1: it is broken")
    assert [one.split()[0] for one in kernel.done[-2:]] == ["umount", "mdadm"]


@pytest.mark.parametrize("unread", ["begun", "formatted"])
def test_what_cannot_be_read_is_not_taken_for_blank(
    on_a_machine: Callable[[Kernel], dict[str, Any]], unread: str
) -> None:
    kernel = Kernel({"begun": True, "formatted": True} | {unread: OSError(5, "Input/output error")})
    body = on_a_machine(kernel)
    assert (body["ranks"], "Input/output error" in body["trouble"]) == ([], True)


def test_its_results_are_saved_while_it_is_mounted(
    on_a_machine: Callable[[Kernel], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel({"begun": True, "formatted": True})
    seen: list[Path] = []
    real = left_volume.left_folder

    @contextmanager
    def noted(*given: Any) -> Iterator[Path | None]:
        with real(*given) as folder:
            assert folder
            seen.append(folder)
            assert kernel.done[-1].startswith("mount -t xfs")
            yield folder

    monkeypatch.setattr("headrace_agent.salvage.left_folder", noted)
    assert on_a_machine(kernel) == NOTHING
    assert [one.name for one in seen] == ["v5"]
    assert kernel.was("umount")


def test_a_door_is_found_as_it_is_also_when_it_is_half_closed_or_gone(tmp_path: Path) -> None:
    nqn = private("c0")
    assert served_as(nqn, tmp_path) is None
    (tmp_path / "subsystems" / nqn / "namespaces/2").mkdir(parents=True)
    assert served_as(nqn, tmp_path) == Served(nqn, (), (2,))


HALF_DONE: dict[str, tuple[list[str], list[str]]] = {
    "the door is half closed": (["door"], ["rmdir"]),
    "the array is assembled, whole or not": (["array"], ["mdadm --stop /dev/md127"]),
    "the volume is mounted": (["array", "mount"], ["umount /n/volumes/v5", "mdadm --stop /dev/md127"]),
}


@pytest.mark.parametrize("state", HALF_DONE)
def test_a_release_undoes_a_salvage_that_was_cut_off(state: str, tmp_path: Path) -> None:
    things, undone = HALF_DONE[state]
    system, nvmet, mounts = tmp_path / "sys", tmp_path / "nvmet", tmp_path / "mounts"
    put(mounts, "/dev/md127 /n/volumes/v5 xfs rw" if "mount" in things else "a / ext4")
    put(system / "block/dm-0/dm/name", "headrace-v5-0-0")
    if "array" in things:
        put(system / "block/md127/slaves/dm-0/dm/name", "headrace-v5-0-0")
    if "door" in things:
        (nvmet / "subsystems" / private("c0") / "namespaces/2").mkdir(parents=True)
    texts = [str(one) for one in release_actions(leftovers([Path("/n/volumes")], system, nvmet, mounts))]
    places = [next(at for at, text in enumerate(texts) if text.startswith(one)) for one in undone]
    assert places == sorted(places)
    assert places[-1] < texts.index("dmsetup remove --retry headrace-v5-0-0")
