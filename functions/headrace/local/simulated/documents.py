"""Documents that reach simulated agents, and what is told of how far they are."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.domain.plan import Role
from headrace.local.simulated.machines import Machine, SimulatedFleets
from headrace.ports import CommandStatus


class Undelivered(NamedTuple):
    """The first `machines` are not reached by a command; the reason is said after some time, or never."""

    machines: float = math.inf
    reason: str = ""
    said_after_seconds: float = math.inf


NOBODY = Undelivered(0)


class SimulatedNodes:
    """The Nodes port: a document reaches every machine of the role and ends as its agent says."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fleets: SimulatedFleets,
        run_document: Callable[[Machine, str], asyncio.Task[None]],
    ) -> None:
        self._loop = loop
        self._fleets = fleets
        self._run_document = run_document
        self._commands: dict[str, dict[str, asyncio.Task[None] | None]] = {}
        self._missed: dict[str, tuple[float, dict[str, str]]] = {}
        """When it is said that a command did not reach some machines, and why."""
        self._offline_until = 0.0

    def online(self, run_id: str, role: Role) -> frozenset[str]:
        """Return ids of the machines of that role whose agent is up."""
        if self._loop.time() < self._offline_until:
            return frozenset()
        return frozenset(one.node.node_id for one in self._of(run_id, role))

    def _of(self, run_id: str, role: Role) -> list[Machine]:
        return [
            one
            for one in self._fleets.machines.values()
            if one.is_online and (one.node.run_id, one.node.role) == (run_id, role)
        ]

    def send(
        self,
        document: str,
        run_id: str,
        role: Role,
        parameters: Mapping[str, str],
        *,
        undelivered: Undelivered = NOBODY,
    ) -> str:
        """Start the document on each machine that it reaches."""
        command_id = f"command-{len(self._commands) + 1}-{document}-{parameters['RunId']}"
        found = self._of(run_id, role)
        missed = [one.node.node_id for number, one in enumerate(found) if number < undelivered.machines]
        self._commands[command_id] = {
            one.node.node_id: None if one.node.node_id in missed else self._run_document(one, document) for one in found
        }
        if undelivered.reason:
            said_at = self._loop.time() + undelivered.said_after_seconds
            self._missed[command_id] = (said_at, dict.fromkeys(missed, undelivered.reason))
        return command_id

    def command_status(self, command_id: str) -> CommandStatus:
        """Return which machines have ended it, and which it could not be delivered to."""
        tasks = self._commands[command_id]
        done = {one: task for one, task in tasks.items() if task and task.done() and not task.cancelled()}
        said_at, missed = self._missed.get(command_id, (0.0, {}))
        failed = missed if self._loop.time() >= said_at else {}
        return CommandStatus(
            succeeded=frozenset(node_id for node_id, task in done.items() if task.exception() is None),
            pending=frozenset(tasks) - frozenset(done) - frozenset(failed),
            failed={node_id: str(task.exception()) for node_id, task in done.items() if task.exception()} | failed,
        )

    def deregister(self, seconds: float) -> None:
        """Have no machine registered for a while."""
        self._offline_until = self._loop.time() + seconds
