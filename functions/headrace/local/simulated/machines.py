"""Machines that exist only as records: launched, booting, running, shutting down, with shortages by type."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from headrace.domain.launch import LaunchRequest
from headrace.local.faults import Faults
from headrace.local.loop import LoopClock
from headrace.local.simulated.watcher import Watcher
from headrace.local.simulated.worlds import machine_world
from headrace.ports import LaunchFault, LaunchResult, Node

ZONE = "zone-a"
BOOT_SECONDS = (20.0, 60.0)
SHUTDOWN_SECONDS = (5.0, 30.0)


class TerminateDenied(Exception):
    """A policy forbids termination at this time."""


@dataclass
class Machine:
    """A simulated machine and the agent tasks that run on it."""

    node: Node
    request: LaunchRequest
    number: int
    """Counts all machines of a site from 1."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    is_online: bool = False
    boots: bool = True
    is_leaving: bool = False
    """It was accepted to end and runs on for a while."""
    say_goodbye: Callable[..., None] = lambda *_: None

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
        watcher: Watcher | None = None,
        on_launch: Callable[[Machine], None] = lambda _machine: None,
        caller: Callable[[], str] = lambda: "somebody",
        on_end: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self.machines: dict[str, Machine] = {}
        self.untagged_seconds = 0.0
        """Younger machines are listed without the tag that says whose they are, where all are listed."""
        self._loop = loop
        self._clock = LoopClock(loop)
        self._source = source
        self._faults = faults
        self._boot = boot
        self._watcher = watcher or Watcher()
        self._on_launch = on_launch
        self._caller = caller
        self._on_end = on_end
        self._launched: dict[str, tuple[LaunchRequest, tuple[str, ...]]] = {}
        self._hidden_until: dict[str, float] = {}
        self._denied_until = self._blank_until = 0.0

    def launch(self, request: LaunchRequest, *, short: int = 0, without: Iterable[str] = ()) -> LaunchResult:
        """Launch from the first type that has capacity; the same token gives the same machines.

        `short` of them do not come, and the types `without` have no capacity. Raises ValueError for a token used
        before with another request, as EC2 does.
        """
        known = self._launched.get(request.client_token)
        if known is not None:
            if known[0] != request:
                raise ValueError(f"IdempotentParameterMismatch: token {request.client_token}")
            return LaunchResult(tuple(self.machines[node_id].node for node_id in known[1]), ())
        faults: list[LaunchFault] = []
        for instance_type in request.instance_types:
            if instance_type not in without and self._has(instance_type, request.count):
                nodes = tuple(self._start(request, instance_type) for _ in range(request.count - short))
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
            placement=request.placement,
        )
        machine = Machine(node, request, number)
        self.machines[node.node_id] = machine
        self._watcher.launched(node, request)
        self._later(self._source.uniform(*BOOT_SECONDS), self._come_up, machine)
        self._on_launch(machine)
        return node

    def _later(self, seconds: float, call: Callable[[Machine], None], machine: Machine) -> None:
        self._loop.call_later(seconds, call, machine, context=machine_world())

    def _come_up(self, machine: Machine) -> None:
        if machine.node.life == "pending":
            machine.node = replace(machine.node, life="running")
            machine.is_online = machine.boots
            if machine.boots:
                self._boot(machine)

    def terminate(self, node_ids: Sequence[str], *, lag_seconds: float = 0.0) -> tuple[str, ...]:
        """Begin the shut-down of each machine that is known; with a lag, it runs on until then, whoever asks again.

        Raises TerminateDenied.
        """
        if self._loop.time() < self._denied_until:
            raise TerminateDenied("UnauthorizedOperation: ec2:TerminateInstances")
        known = [self.machines[node_id] for node_id in node_ids if self._is_known(node_id)]
        for machine in known:
            self._watcher.asked(machine.node.node_id)
            self._end_after(machine, self._caller(), lag_seconds)
        return tuple(machine.node.node_id for machine in known)

    def _end_after(self, machine: Machine, caller: str, lag_seconds: float) -> None:
        if machine.is_leaving:
            return
        machine.is_leaving = lag_seconds > 0
        if machine.is_leaving:
            self._later(lag_seconds, lambda one: self._end_soon(one, caller, says_goodbye=True), machine)
        else:
            self._end_soon(machine, caller, says_goodbye=True)

    def _is_known(self, node_id: str) -> bool:
        return node_id in self.machines and self._loop.time() >= self._hidden_until.get(node_id, 0.0)

    def _end_soon(self, machine: Machine, why: str, *, says_goodbye: bool) -> None:
        if machine.node.life not in ("pending", "running"):
            return
        machine.node = replace(machine.node, life="stopping", ended_at=self._clock.now())
        self._watcher.released(machine.node.node_id, why)
        if says_goodbye:
            machine.shut_down()
        else:
            machine.stop()
        self._later(self._source.uniform(*SHUTDOWN_SECONDS), self._end, machine)
        self._on_end(machine.node.node_id, "shutting-down")

    def _end(self, machine: Machine) -> None:
        machine.node = replace(machine.node, life="terminated")
        self._watcher.ended(machine.node.node_id)
        self._on_end(machine.node.node_id, "terminated")

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        """Return every machine of the run, or of all."""
        shown = (one.node for one in self.machines.values() if self._is_known(one.node.node_id))
        nodes = tuple(node for node in shown if run_id in (None, node.run_id))
        if run_id is None and self.untagged_seconds:
            nodes = tuple(self._without_tags(node) for node in nodes)
        if self._loop.time() < self._blank_until:
            return tuple(replace(node, address="") for node in nodes)
        return nodes

    def find(self, node_id: str) -> Node | None:
        """Return the machine if calls know it."""
        return self.machines[node_id].node if self._is_known(node_id) else None

    def _without_tags(self, node: Node) -> Node:
        age_seconds = (self._clock.now() - node.launched_at).total_seconds()
        return replace(node, run_id="") if age_seconds < self.untagged_seconds else node

    def lose(self, node_id: str, why: str, *, says_goodbye: bool) -> None:
        """End a machine that nobody asked to end: reclaimed, broken, or powered off from inside."""
        self._end_soon(self.machines[node_id], why, says_goodbye=says_goodbye)

    def hide(self, node_ids: Iterable[str], seconds: float) -> None:
        """Have no call know these machines for a while, as EC2 does after a launch."""
        self._hidden_until |= dict.fromkeys(node_ids, self._loop.time() + seconds)

    def deny_terminate(self, seconds: float) -> None:
        """Refuse every termination for a while."""
        self._denied_until = self._loop.time() + seconds

    def blank_addresses(self, seconds: float) -> None:
        """List machines without an address for a while."""
        self._blank_until = self._loop.time() + seconds
