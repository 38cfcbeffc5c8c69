"""The Nodes port on one machine: runs the SSM documents' own command lines in the nodes' environments."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headrace.domain.plan import Role
from headrace.local.document_file import Document, read_document
from headrace.local.packaged import packaged
from headrace.ports import CommandStatus, Entropy, Node

TAIL_BYTES = 2_500
"""What SSM keeps of an output in a listing (aws-facts.md section 3)."""


class NodeProcesses(Protocol):
    """What the port needs from the driver of the nodes."""

    def folder(self, run_id: str, node_id: str) -> Path:
        """Return the node's folder."""
        ...

    def environment(self, run_id: str, node_id: str) -> dict[str, str]:
        """Return the environment of the node's processes."""
        ...

    def has_agent(self, run_id: str, node_id: str) -> bool:
        """Tell whether the node can take a document."""
        ...


Command = Callable[[str, str, str], Sequence[str]]
"""Makes the command of this machine that runs a script on the node, given as run id, node id and script."""


def shell_command(_run_id: str, _node_id: str, script: str) -> Sequence[str]:
    """Return the command where a node is processes of this machine."""
    return ("/bin/sh", "-c", script)


@dataclass
class Invocation:
    """One document on one node; `ended` holds the exit code once it is known."""

    process: subprocess.Popen[bytes]
    output: Path
    deadline: float
    ended: int | None = None
    is_late: bool = False

    def look(self, now: float) -> None:
        """Note the end of the process; a late one is killed."""
        if self.ended is None and self.process.poll() is None and now > self.deadline:
            self.is_late = True
            self.process.kill()
            self.process.wait()
        self.ended = self.process.returncode

    def failure(self) -> str:
        """Return why it failed, with the last lines of its output."""
        tail = self.output.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        why = "timed out" if self.is_late else f"exit code {self.ended}"
        return f"{why}: {tail}" if tail else why


class LocalDocuments:
    """The Nodes port; commands are known to the process that sent them."""

    def __init__(
        self,
        processes: NodeProcesses,
        list_nodes: Callable[[str], Sequence[Node]],
        entropy: Entropy,
        folder: Path | None = None,
        command: Command = shell_command,
    ) -> None:
        self._processes = processes
        self._list_nodes = list_nodes
        self._entropy = entropy
        self._folder = folder
        self._command = command
        self._lock = threading.Lock()
        self._commands: dict[str, dict[str, Invocation]] = {}

    def online(self, run_id: str, role: Role) -> frozenset[str]:
        """Return ids of the running nodes of that role whose agent lives."""
        nodes = (node for node in self._list_nodes(run_id) if node.role == role and node.life == "running")
        return frozenset(node.node_id for node in nodes if self._processes.has_agent(run_id, node.node_id))

    def send(self, document: str, run_id: str, role: Role, parameters: Mapping[str, str]) -> str:
        """Start the document on every node of that run and role that is online. Return the command's id.

        Raises DocumentRefused, starting nothing, for an unknown document or a parameter that it does not allow.
        """
        read = read_document(self._folder or packaged("documents"), document)
        variables = read.variables(parameters)
        command_id = self._entropy.token_hex(16)
        invocations = {
            node_id: self._invoke(read, run_id, node_id, variables, command_id)
            for node_id in sorted(self.online(run_id, role))
        }
        with self._lock:
            self._commands[command_id] = invocations
        return command_id

    def command_status(self, command_id: str) -> CommandStatus:
        """Return how far the command is, from the exit codes of its processes.

        Raises ValueError for an id that was never given out here.
        """
        with self._lock:
            if command_id not in self._commands:
                raise ValueError(f"no command has the id {command_id!r}")
            invocations = self._commands[command_id]
            for one in invocations.values():
                one.look(time.monotonic())
            return CommandStatus(
                succeeded=frozenset(node_id for node_id, one in invocations.items() if one.ended == 0),
                pending=frozenset(node_id for node_id, one in invocations.items() if one.ended is None),
                failed={node_id: one.failure() for node_id, one in invocations.items() if one.ended},
            )

    def close(self) -> None:
        """End what still runs."""
        with self._lock:
            for one in (one for invocations in self._commands.values() for one in invocations.values()):
                one.look(float("inf"))

    def _invoke(
        self, document: Document, run_id: str, node_id: str, variables: Mapping[str, str], command_id: str
    ) -> Invocation:
        folder = self._processes.folder(run_id, node_id)
        output = folder / "log" / "documents" / f"{document.name}-{command_id}.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as log:
            process = subprocess.Popen(
                self._command(run_id, node_id, document.script),
                cwd=folder,
                env={**self._processes.environment(run_id, node_id), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return Invocation(process, output, time.monotonic() + document.timeout_seconds)
