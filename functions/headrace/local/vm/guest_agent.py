"""Talks to the agent inside a guest: runs a script there and gives its exit code and output, as Systems Manager does.

The protocol is QEMU's guest agent on a virtio port (qemu-ga protocol reference: guest-sync, guest-exec,
guest-exec-status); it answers also while the guest's storage hangs.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UMASK = "umask 022\n"
"""The guest agent's own, 077, would hide what a script makes from the user that jobs run as."""

ANSWER_SECONDS = 30.0
SYNC_SECONDS = 3.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.5
LATE, SIGNALLED = 124, 128


class GuestSilent(Exception):
    """The agent in the guest does not answer."""


@dataclass(frozen=True)
class Done:
    """How a script ended; `code` is 124 when it did not end in time."""

    code: int
    output: str
    errors: str


class GuestAgent:
    """One conversation with the guest agent behind a socket, which serves one at a time. Raises GuestSilent."""

    def __init__(self, path: Path, patience_seconds: float) -> None:
        self._socket = _open(path, time.monotonic() + patience_seconds)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()

    def run(self, script: str, environment: Mapping[str, str], seconds: float) -> Done:
        """Run a shell script as root in the guest, its text never part of a command line."""
        process_id = self.start(script, environment)
        end, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
        while time.monotonic() < end:
            if done := self.look(process_id):
                return done
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
        return Done(LATE, "", f"not ended after {seconds:.0f} s")

    def start(self, script: str, environment: Mapping[str, str]) -> int:
        """Start a script and return its process id in the guest."""
        given = [PATH, "HOME=/root", *(f"{name}={value}" for name, value in environment.items())]
        answer = self._call(
            "guest-exec",
            {
                "path": "/bin/bash",
                "arg": ["-s"],
                "env": given,
                "input-data": base64.b64encode(f"{UMASK}{script}".encode()).decode(),
                "capture-output": True,
            },
        )
        return int(answer["pid"])

    def look(self, process_id: int) -> Done | None:
        """Return how a script ended, or None while it runs; the answer is given once only."""
        state = self._call("guest-exec-status", {"pid": process_id})
        if not state["exited"]:
            return None
        output, errors = (
            base64.b64decode(state.get(name, "")).decode("utf-8", "replace") for name in ("out-data", "err-data")
        )
        return Done(int(state.get("exitcode", SIGNALLED + state.get("signal", 0))), output, errors)

    def write(self, path: str, data: bytes, seconds: float = ANSWER_SECONDS) -> None:
        """Write a file in the guest."""
        text = base64.b64encode(data).decode()
        done = self.run(f"base64 -d > '{path}' <<'END'\n{text}\nEND\n", {}, seconds)
        if done.code:
            raise GuestSilent(f"cannot write {path} in the guest: {done.errors}")

    def _call(self, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _ask(self._socket, self._stream, command, arguments)
        except (OSError, ValueError) as error:
            raise GuestSilent(f"the guest agent did not answer {command}: {error}") from error


def _open(path: Path, end: float) -> socket.socket:
    """Connect until the agent answers; a socket's name may have 107 bytes only, so the folder is opened instead."""
    trouble: Exception = GuestSilent(f"no guest agent behind {path}")
    while time.monotonic() < end:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SYNC_SECONDS)
        try:
            _connect(connection, path)
            _synchronize(connection)
        except (OSError, ValueError) as error:
            trouble = error
            connection.close()
            time.sleep(FIRST_PAUSE_SECONDS * 4)
        else:
            connection.settimeout(ANSWER_SECONDS)
            return connection
    raise GuestSilent(f"the guest agent behind {path} does not answer: {trouble}")


def _connect(connection: socket.socket, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _synchronize(connection: socket.socket) -> None:
    """Throw away what an earlier conversation left; the byte 0xff resets the agent's parser."""
    token = secrets.randbelow(1 << 30)
    connection.sendall(b"\xff" + json.dumps({"execute": "guest-sync", "arguments": {"id": token}}).encode() + b"\n")
    buffer = b""
    while str(token).encode() not in buffer or not buffer.endswith(b"\n"):
        received = connection.recv(4096)
        if not received:
            raise OSError("the agent closed the connection")
        buffer += received


def _ask(connection: socket.socket, stream: Any, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    connection.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
    line = stream.readline()
    if not line:
        raise OSError("the agent closed the connection")
    answer = json.loads(line)
    if "error" in answer:
        raise GuestSilent(f"the guest agent refused {command}: {answer['error'].get('desc')}")
    returned: dict[str, Any] = answer["return"]
    return returned
