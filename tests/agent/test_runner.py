"""Executing and recording actions."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from headrace_agent import runner
from headrace_agent.action_failed import ActionFailed
from headrace_agent.actions import Action, Await, Link, Mark, Run, Together, Unless, Write
from headrace_agent.mounts import is_mounted, mount_points
from headrace_agent.runner import Doing, execute, record


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


def test_commands_together_are_done_at_the_same_time_and_the_first_fault_is_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Neither end of a pipe opens before the other does.
    both = Together((Run(("sh", "-c", f"echo x > {pipe}")), Run(("sh", "-c", f"cat {pipe} > {tmp_path}/out"))))
    execute([both], str)
    assert (tmp_path / "out").read_text() == "x\n"
    with pytest.raises(ActionFailed, match="exit code 3"):
        execute([Together((Run(("true",)), Run(("sh", "-c", "exit 3"))))], str)


def test_together_leaves_out_what_is_done_already(tmp_path: Path) -> None:
    there = Unless("exists", str(tmp_path))
    execute([Together((Run(("false",), there), Run(("touch", str(tmp_path / "made")))))], str)
    assert (tmp_path / "made").exists()


def test_one_of_several_ways_is_given_up_after_one_try_when_another_is_there(tmp_path: Path) -> None:
    tried = Run(("sh", "-c", f"echo x >> {tmp_path}/log; false"), tries=1000, spare=Unless("exists", str(tmp_path)))
    assert execute([Together((tried,))], str) == 1
    assert (tmp_path / "log").read_text() == "x\n"


def test_a_command_that_does_not_end_is_given_up_after_its_seconds() -> None:
    with pytest.raises(ActionFailed, match="not ended after 0 s"):
        execute([Run(("sleep", "60"), seconds=0)], str)


def test_told_to_stop_nothing_is_tried_or_waited_for_again() -> None:
    with pytest.raises(ActionFailed, match="told to stop"):
        execute([Run(("false",), tries=1000)], str, Doing(lambda: True))
    with pytest.raises(ActionFailed, match="told to stop while waiting until exists: /nowhere"):
        execute([Await(Unless("exists", "/nowhere"), 1000)], str, Doing(lambda: True))


def test_a_key_is_given_and_written_and_never_said(tmp_path: Path) -> None:
    said: list[str] = []
    keys = {"10.0.0.1": "DHHC-1:01:secret:"}
    run = Run(("sh", "-c", f"cat > {tmp_path}/given; false"), given="nqn=n,dhchap_secret=key(10.0.0.1)", may_fail=True)
    execute([run, Write(str(tmp_path / "written"), "key(10.0.0.1)")], said.append, Doing(keys=keys))
    assert (tmp_path / "given").read_text() == "nqn=n,dhchap_secret=DHHC-1:01:secret:"
    assert (tmp_path / "written").read_text() == "DHHC-1:01:secret:"
    assert "secret:" not in "".join(said)
    with pytest.raises(ActionFailed) as failed:
        execute([replace(run, may_fail=False)], said.append, Doing(keys=keys))
    assert "secret:" not in f"{failed.value}{Doing(keys=keys)!r}"
    with pytest.raises(ActionFailed, match=r"was given no key for 10\.0\.0\.2"):
        execute([Write(str(tmp_path / "other"), "key(10.0.0.2)")], said.append, Doing(keys=keys))


def test_a_wait_ends_in_time(tmp_path: Path) -> None:
    assert execute([Await(Unless("exists", str(tmp_path)), 0)], str) == 0
    with pytest.raises(ActionFailed, match="waited -1 s in vain until exists: /nowhere"):
        execute([Await(Unless("exists", "/nowhere"), -1)], str)


def test_a_wait_that_may_be_in_vain_lets_the_next_action_go_on(tmp_path: Path) -> None:
    execute([Await(Unless("exists", "/nowhere"), -1, may_fail=True), Write(str(tmp_path / "file"), "x")], str)
    assert (tmp_path / "file").exists()


def test_a_mark_fills_the_first_block_and_no_more(tmp_path: Path) -> None:
    member = tmp_path / "member"
    member.write_bytes(b"x" * 8192)
    mark: list[Action] = [Mark(str(member), "headrace filled 1")]
    assert execute(mark, str) == 1
    assert member.read_bytes() == b"headrace filled 1\n".ljust(4096, b"\0") + b"x" * 4096
    assert execute(mark, str) == 0


def test_what_cannot_be_read_is_never_taken_for_a_blank_member(tmp_path: Path) -> None:
    array = "11111111-2222-5333-8444-555555555555"
    create = Run(("touch", str(tmp_path / "made")), Unless("striped", f"{array}={tmp_path}/gone"))
    with pytest.raises(ActionFailed, match="cannot tell whether it is needed"):
        execute([create], str)
    assert not (tmp_path / "made").exists()


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
    assert mount_points(text) == ("/data", "/with blank")
    (tmp_path / "mounts").write_text(text)
    assert is_mounted(Path("/data"), tmp_path / "mounts")
    assert not is_mounted(Path("/dat"), tmp_path / "mounts")
