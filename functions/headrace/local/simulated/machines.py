"""Machines that exist only as records: fleets with shortages, and documents that reach a simulated agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from headrace.domain.plan import Role
from headrace.local.faults import Faults
from headrace.local.loop import LoopClock
from headrace.ports import CommandStatus, LaunchFault, LaunchRequest, LaunchResult, Node

ZONE = "zone-a"
BOOT_SECONDS = (20.0, 60.0)
SHUTDOWN_SECONDS = (5.0, 30.0)


@dataclass
class Machine:
    """A simulated machine and the agent tasks that run on it."""

    node: Node
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    is_online: bool = False
    say_goodbye: Callable[[], None] = lambda: None

    def shut_down(self) -> None:
        """Let the agent say its last word, then end everything."""
        self.say_goodbye()
        self.stop()

    def stop(self) -> None:
        """End everything that runs on the machine, as a loss of power does."""
        for task in self.tasks:
            task.cancel()
        self.is_online = False


class SimulatedFleets:
    """The Fleets port: capacity by instance type, client tokens, and machines that take time to come and to go."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: Random,
        faults: Faults,
        boot: Callable[[Machine], None],
    ) -> None:
        self.machines: dict[str, Machine] = {}
        self._loop = loop
        self._clock = LoopClock(loop)
        self._source = source
        self._faults = faults
        self._boot = boot
        self._launched: dict[str, tuple[LaunchRequest, tuple[str, ...]]] = {}

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """Launch from the first type that has capacity; the same token gives the same machines.

        Raises ValueError for a token used before with another request, as EC2 does.
        """
        known = self._launched.get(request.client_token)
        if known is not None:
            if known[0] != request:
                raise ValueError(f"IdempotentParameterMismatch: token {request.client_token}")
            return LaunchResult(tuple(self.machines[node_id].node for node_id in known[1]), ())
        faults: list[LaunchFault] = []
        for instance_type in request.instance_types:
            if self._has(instance_type, request.count):
                nodes = tuple(self._start(request, instance_type) for _ in range(request.count))
                self._launched[request.client_token] = (request, tuple(node.node_id for node in nodes))
                return LaunchResult(nodes, tuple(faults))
            faults.append(LaunchFault(instance_type, ZONE, "capacity", "InsufficientInstanceCapacity"))
        return LaunchResult((), tuple(faults))

    def _has(self, instance_type: str, count: int) -> bool:
        available = self._faults.available(instance_type, ZONE)
        return available is None or available >= count

    def _start(self, request: LaunchRequest, instance_type: str) -> Node:
        number = len(self.machines) + 1
        node = Node(
            node_id=f"i-{self._source.getrandbits(68):017x}",
            run_id=request.run_id,
            role=request.role,
            instance_type=instance_type,
            zone=ZONE,
            address=f"10.0.{number // 250}.{number % 250 + 1}",
            life="pending",
            launched_at=self._clock.now(),
        )
        machine = Machine(node)
        self.machines[node.node_id] = machine
        self._loop.call_later(self._source.uniform(*BOOT_SECONDS), self._come_up, machine)
        return node

    def _come_up(self, machine: Machine) -> None:
        if machine.node.life == "pending":
            machine.node = replace(machine.node, life="running")
            machine.is_online = True
            self._boot(machine)

    def terminate(self, node_ids: Sequence[str]) -> tuple[str, ...]:
        """Begin the shut-down of each machine that is known."""
        known = [self.machines[node_id] for node_id in node_ids if node_id in self.machines]
        for machine in known:
            if machine.node.life in ("pending", "running"):
                machine.node = replace(machine.node, life="stopping")
                machine.shut_down()
                self._loop.call_later(self._source.uniform(*SHUTDOWN_SECONDS), self._end, machine)
        return tuple(machine.node.node_id for machine in known)

    def _end(self, machine: Machine) -> None:
        machine.node = replace(machine.node, life="terminated")

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        """Return every machine of the run, or of all."""
        return tuple(one.node for one in self.machines.values() if run_id in (None, one.node.run_id))


class SimulatedNodes:
    """The Nodes port: a document reaches every machine of the role and ends as its agent says."""

    def __init__(self, fleets: SimulatedFleets, run_document: Callable[[Machine, str], asyncio.Task[None]]) -> None:
        self._fleets = fleets
        self._run_document = run_document
        self._commands: dict[str, dict[str, asyncio.Task[None]]] = {}

    def online(self, run_id: str, role: Role) -> frozenset[str]:
        """Return ids of the machines of that role whose agent is up."""
        return frozenset(one.node.node_id for one in self._of(run_id, role))

    def _of(self, run_id: str, role: Role) -> list[Machine]:
        return [
            one
            for one in self._fleets.machines.values()
            if one.is_online and (one.node.run_id, one.node.role) == (run_id, role)
        ]

    def send(self, document: str, run_id: str, role: Role, parameters: Mapping[str, str]) -> str:
        """Start the document on each machine."""
        command_id = f"command-{len(self._commands) + 1}-{document}-{parameters['RunId']}"
        self._commands[command_id] = {
            one.node.node_id: self._run_document(one, document) for one in self._of(run_id, role)
        }
        return command_id

    def command_status(self, command_id: str) -> CommandStatus:
        """Return which machines have ended it."""
        tasks = self._commands[command_id]
        done = {node_id: task for node_id, task in tasks.items() if task.done() and not task.cancelled()}
        return CommandStatus(
            succeeded=frozenset(node_id for node_id, task in done.items() if task.exception() is None),
            pending=frozenset(tasks) - frozenset(done),
            failed={node_id: str(task.exception()) for node_id, task in done.items() if task.exception()},
        )
