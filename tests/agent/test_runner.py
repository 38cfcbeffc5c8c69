"""Executing and recording actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_agent import runner
from headrace_agent.actions import Action, Link, Run, Unless, Write
from headrace_agent.machine import Disk, this_machine
from headrace_agent.mounts import is_mounted, mount_points
from headrace_agent.runner import ActionFailed, execute, holds, record


def test_actions_are_done_in_order_and_those_not_needed_are_left_out(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    actions: list[Action] = [
        Run(("mkdir", str(tmp_path / "made"))),
        Write(str(tmp_path / "made/file"), "a b $c"),
        Link(str(tmp_path / "made"), str(tmp_path / "link")),
        Run(("false",), Unless("exists", str(there))),
        Write(str(there), "changed", Unless("exists", f"{tmp_path}/th*")),
    ]
    said: list[str] = []
    assert execute(actions, said.append) == 3
    assert (tmp_path / "link/file").read_text() == "a b $c"
    assert there.read_text() == ""
    assert said == [str(action) for action in actions[:3]]


def test_a_second_time_links_are_left_alone(tmp_path: Path) -> None:
    link: list[Action] = [Link("/somewhere", str(tmp_path / "link"))]
    (tmp_path / "link").symlink_to("/tmp")
    assert execute(link, str) == 0
    assert (tmp_path / "link").readlink() == Path("/tmp")


def test_a_command_that_fails_stops_the_rest_and_is_told_with_what_it_said(tmp_path: Path) -> None:
    fails = Run(("sh", "-c", "echo no such disk >&2; exit 4"))
    with pytest.raises(ActionFailed, match=r"exit code 4: no such disk"):
        execute([fails, Write(str(tmp_path / "never"), "x")], str)
    assert not (tmp_path / "never").exists()


def test_a_program_that_is_not_installed_is_told() -> None:
    with pytest.raises(ActionFailed, match="no-such-program"):
        execute([Run(("no-such-program",))], str)


def test_a_write_that_the_kernel_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ActionFailed, match="Is a directory"):
        execute([Write(str(tmp_path / "folder"), "x")], str)


def test_a_command_that_may_fail_lets_the_next_one_go_on(tmp_path: Path) -> None:
    assert execute([Run(("false",), may_fail=True), Run(("touch", str(tmp_path / "next")))], str) == 2
    assert (tmp_path / "next").exists()


def test_a_command_whose_device_comes_late_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "AGAIN_SECONDS", 0.0)
    late = f"echo x >> {tmp_path}/log; test $(wc -l < {tmp_path}/log) -ge 3"
    execute([Run(("sh", "-c", late), tries=5)], str)
    assert (tmp_path / "log").read_text() == "x\nx\nx\n"
    with pytest.raises(ActionFailed):
        execute([Run(("false",), tries=2)], str)


def test_states_are_read_from_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "enable").write_text("1\n")
    (tmp_path / "disabled").write_text("0\n")
    (tmp_path / "nvme0").mkdir()
    (tmp_path / "nvme0/subsysnqn").write_text("nqn.a\n")
    monkeypatch.setattr(runner, "NVME_CONTROLLERS", f"{tmp_path}/nvme*/subsysnqn")
    monkeypatch.setattr(runner, "_file_system_uuid", {"/dev/md/x": "uuid-1"}.__getitem__)
    assert holds(Unless("enabled", str(tmp_path / "enable")))
    assert not holds(Unless("enabled", str(tmp_path / "disabled")))
    assert not holds(Unless("enabled", str(tmp_path / "absent")))
    assert holds(Unless("connected", "nqn.a"))
    assert not holds(Unless("connected", "nqn"))
    assert holds(Unless("formatted", "/dev/md/x=uuid-1"))
    assert not holds(Unless("formatted", "/dev/md/x=uuid-2"))
    assert holds(Unless("mounted", "/proc"))
    assert not holds(Unless("mounted", str(tmp_path)))


def test_recorded_actions_are_said_and_written_once(tmp_path: Path) -> None:
    actions: list[Action] = [Run(("nvme", "connect")), Write("/sys/x", "1")]
    said: list[str] = []
    record(actions, tmp_path, said.append)
    record([*actions, Run(("third",))], tmp_path, said.append)
    assert said[:2] == ["not executed here: nvme connect", "not executed here: echo -n 1 > /sys/x"]
    lines = (tmp_path / "not-executed.jsonl").read_text().splitlines()
    assert [json.loads(line)["command"] for line in lines] == ["nvme connect", "echo -n 1 > /sys/x", "third"]


def test_mount_points_are_those_of_the_kernels_list(tmp_path: Path) -> None:
    text = "/dev/md127 /data xfs rw 0 0\nnone /with\\040blank tmpfs rw 0 0\n\n"
    assert mount_points(text) == {"/data", "/with blank"}
    (tmp_path / "mounts").write_text(text)
    assert is_mounted(Path("/data"), tmp_path / "mounts")
    assert not is_mounted(Path("/dat"), tmp_path / "mounts")


def disk(system: Path, name: str, serial: str, sectors: int, **facts: str) -> None:
    device = system / "block" / name / "device"
    device.mkdir(parents=True)
    (system / "block" / name / "size").write_text(f"{sectors}\n")
    for fact, value in {"serial": serial, **facts}.items():
        (device / fact).write_text(f"{value}\n")


def test_only_local_disks_are_used_in_an_order_that_survives_a_reboot(tmp_path: Path) -> None:
    disk(tmp_path, "nvme0n1", "vol1", 100, model="Amazon Elastic Block Store", transport="pcie")
    disk(tmp_path, "nvme2n1", "AWS-A", 200, model="Amazon EC2 NVMe Instance Storage", transport="pcie")
    disk(tmp_path, "nvme1n1", "AWS-B", 300, model="Amazon EC2 NVMe Instance Storage", transport="pcie")
    disk(tmp_path, "nvme3n1", "x", 400, model="Linux", transport="tcp")
    disk(tmp_path, "nvme0c0n1", "y", 500)
    disk(tmp_path, "sda", "z", 600)
    assert this_machine(tmp_path).disks == (Disk("/dev/nvme2n1", 200), Disk("/dev/nvme1n1", 300))
