"""The conversation with the agent in a guest, against one that is scripted."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.local.vm.carry import guest_environment
from headrace.local.vm.guest_agent import Done, GuestAgent, GuestSilent


class ScriptedGuest:
    """Answers like qemu-ga: a script runs for one look, then it has ended."""

    def __init__(self, path: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.exit_code = 0
        self._looks = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                # What an earlier conversation left unread comes first.
                stream.write(b'{"return": {"pid": 1}}\n')
                for line in stream:
                    request = json.loads(line.lstrip(b"\xff"))
                    self.asked.append(request)
                    stream.write(json.dumps(self._answer(request)).encode() + b"\n")
                    stream.flush()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["execute"] == "guest-sync":
            return {"return": request["arguments"]["id"]}
        if request["execute"] == "guest-exec":
            self._looks = 0
            return {"return": {"pid": 7}}
        if request["arguments"]["pid"] != 7:
            return {"error": {"desc": "Invalid parameter 'pid'"}}
        self._looks += 1
        output = base64.b64encode(b"out\n").decode()
        ended = {"exited": True, "exitcode": self.exit_code, "out-data": output}
        return {"return": ended if self._looks > 1 else {"exited": False}}


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[ScriptedGuest]:
    made = ScriptedGuest(tmp_path / "qga.sock")
    yield made
    made.close()


@pytest.mark.usefixtures("guest")
def test_a_script_gives_its_exit_code_and_output(guest: ScriptedGuest, tmp_path: Path) -> None:
    guest.exit_code = 3
    with GuestAgent(tmp_path / "qga.sock", 5) as agent:
        assert agent.run("exit 3", {}, 5) == Done(3, "out\n", "")


def test_script_and_environment_are_no_part_of_a_command_line(guest: ScriptedGuest, tmp_path: Path) -> None:
    with GuestAgent(tmp_path / "qga.sock", 5) as agent:
        agent.run("echo 'a b'; $(id)", {"SSM_RunId": "run 1"}, 5)
    asked = next(one["arguments"] for one in guest.asked if one["execute"] == "guest-exec")
    assert (asked["path"], asked["arg"]) == ("/bin/bash", ["-s"])
    assert base64.b64decode(asked["input-data"]).decode() == "umask 022\necho 'a b'; $(id)"
    assert "SSM_RunId=run 1" in asked["env"]


def test_a_script_that_does_not_end_in_time_is_told(guest: ScriptedGuest, tmp_path: Path) -> None:
    with GuestAgent(tmp_path / "qga.sock", 5) as agent:
        assert agent.run("sleep 9", {}, 0).code == 124
    assert guest.asked


@pytest.mark.usefixtures("guest")
def test_what_the_guest_refuses_is_told(tmp_path: Path) -> None:
    with GuestAgent(tmp_path / "qga.sock", 5) as agent, pytest.raises(GuestSilent, match="Invalid parameter 'pid'"):
        agent.look(8)


def test_a_guest_that_is_not_there_is_given_up_in_time(tmp_path: Path) -> None:
    with pytest.raises(GuestSilent, match=r"qga\.sock does not answer"):
        GuestAgent(tmp_path / "qga.sock", 0.3)


def test_a_guest_reaches_the_endpoints_of_this_machine_and_learns_nothing_else_of_it() -> None:
    given = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:4711", "AWS_REGION": "r", "SSM_RunId": "a", "HOME": "/root"}
    assert guest_environment(given) == {
        "AWS_ENDPOINT_URL_S3": "http://10.0.2.2:4711",
        "AWS_REGION": "r",
        "SSM_RunId": "a",
    }
