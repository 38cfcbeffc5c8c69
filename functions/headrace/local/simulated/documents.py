"""Documents that reach simulated agents, and what is told of how far they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from headrace.domain.plan import Role
from headrace.local.simulated.machines import Machine, SimulatedFleets
from headrace.ports import CommandStatus


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
        self, document: str, run_id: str, role: Role, parameters: Mapping[str, str], *, reaches: bool = True
    ) -> str:
        """Start the document on each machine, or on none when it reaches nobody."""
        command_id = f"command-{len(self._commands) + 1}-{document}-{parameters['RunId']}"
        self._commands[command_id] = {
            one.node.node_id: self._run_document(one, document) if reaches else None for one in self._of(run_id, role)
        }
        return command_id

    def command_status(self, command_id: str) -> CommandStatus:
        """Return which machines have ended it."""
        tasks = self._commands[command_id]
        done = {one: task for one, task in tasks.items() if task and task.done() and not task.cancelled()}
        return CommandStatus(
            succeeded=frozenset(node_id for node_id, task in done.items() if task.exception() is None),
            pending=frozenset(tasks) - frozenset(done),
            failed={node_id: str(task.exception()) for node_id, task in done.items() if task.exception()},
        )

    def deregister(self, seconds: float) -> None:
        """Have no machine registered for a while."""
        self._offline_until = self._loop.time() + seconds
