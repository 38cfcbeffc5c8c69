"""The Fleets port on one machine: what was launched, whether it still lives, and shortages on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Protocol

from headrace.domain.errors import HeadraceError
from headrace.domain.launch import LaunchRequest
from headrace.local.faults import Faults
from headrace.local.fleet_table import FleetTable, Launch
from headrace.ports import Clock, LaunchFault, LaunchResult, Node

ZONES = "abc"
LISTED_AFTER_END = timedelta(hours=1)
"""How long EC2 goes on listing a terminated instance."""


class ClientTokenReused(HeadraceError):
    """A launch repeats a client token with other parameters, as EC2's IdempotentParameterMismatch."""


class NodeDriver(Protocol):
    """How nodes come to life and end."""

    def folder(self, run_id: str, node_id: str) -> Path | None:
        """Return the folder that other nodes can read, if there is such a thing."""
        ...

    def start(self, node: Node, request: LaunchRequest) -> None:
        """Bring the node up. Raises OSError when it cannot."""
        ...

    def stop(self, run_id: str, node_id: str) -> None:
        """Begin to end the node and return at once; safe to repeat."""
        ...

    def present(self, expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return (run id, node id) of every node of which anything runs; certain of those expected."""
        ...


def loopback(_run_id: str, _node_id: str) -> str:
    """Return the address of nodes that are processes of this machine."""
    return "127.0.0.1"


class LocalFleets:
    """The Fleets port; its state outlives the process that launched, so any other can list and terminate.

    A node is `terminated` only when the driver finds nothing of it running any more, whoever ended it. `address`
    gives each node, by run id and node id, where others will reach it.
    """

    def __init__(
        self,
        path: Path | None,
        driver: NodeDriver,
        clock: Clock,
        random: Random,
        faults: Faults,
        address: Callable[[str, str], str] = loopback,
    ) -> None:
        self._table = FleetTable(path)
        self._driver = driver
        self._clock = clock
        self._random = random
        self._faults = faults
        self._address = address

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """Launch `request.count` nodes, types in order and zones in order; the rest is reported as faults.

        Raises ClientTokenReused. An earlier launch with this token and these parameters is answered again.
        """
        launch, is_new = self._table.open_launch(request, lambda: self._draw(request))
        if launch.request != request:
            raise ClientTokenReused(
                f"the client token {request.client_token!r} was used with other parameters. Asked now: {request}; "
                f"asked before: {launch.request}. Repeat it unchanged, or take another token"
            )
        if is_new:
            launch = self._start(launch)
        ids = {node.node_id for node in launch.nodes}
        return LaunchResult(
            tuple(node for node in self.list_nodes(request.run_id) if node.node_id in ids), launch.faults
        )

    def terminate(self, node_ids: Sequence[str]) -> tuple[str, ...]:
        """Begin to end each node; idempotent. Return the ids accepted, unknown ids left out."""
        nodes = [node for node_id in node_ids if (node := self._table.find(node_id)) is not None]
        for node in nodes:
            if node.life != "terminated":
                self._table.move(node.node_id, ("pending", "running"), "stopping")
                self._driver.stop(node.run_id, node.node_id)
        return tuple(node.node_id for node in nodes)

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        """Return every node of the run, or of all runs, in launch order; terminated ones for another hour."""
        listed = self._table.nodes(run_id, ended_after=self._clock.now() - LISTED_AFTER_END)
        # Rows first, processes second: a node said to run had its process before we looked for it.
        expected = frozenset((node.run_id, node.node_id) for node in listed if node.life in ("running", "stopping"))
        present = self._driver.present(expected)
        return tuple(self._confirmed(node, (node.run_id, node.node_id) in present) for node in listed)

    def find(self, node_id: str) -> Node | None:
        """Return the node, whose run is asked for as `list_nodes` does, or None."""
        known = self._table.find(node_id)
        listed = self.list_nodes(known.run_id) if known else ()
        return next((node for node in listed if node.node_id == node_id), None)

    def close(self) -> None:
        """Close the table; nodes live on."""
        self._table.close()

    def _confirmed(self, node: Node, is_present: bool) -> Node:
        """Return the node with the life that its processes show; one thought dead that is not is ended again."""
        if node.life in ("running", "stopping") and not is_present:
            self._table.move(node.node_id, ("running", "stopping"), "terminated", self._clock.now())
            return replace(node, life="terminated")
        if node.life == "terminated" and is_present:
            self._table.move(node.node_id, ("terminated",), "stopping")
            self._driver.stop(node.run_id, node.node_id)
            return replace(node, life="stopping")
        return node

    def _draw(self, request: LaunchRequest) -> Launch:
        places, faults = _places(request, self._faults)
        return Launch(request, tuple(self._node(request, *place) for place in places), faults)

    def _node(self, request: LaunchRequest, instance_type: str, zone: str) -> Node:
        node_id = f"i-{self._random.getrandbits(68):017x}"
        folder = self._driver.folder(request.run_id, node_id)
        return Node(
            node_id=node_id,
            run_id=request.run_id,
            role=request.role,
            instance_type=instance_type,
            zone=zone,
            address=self._address(request.run_id, node_id),
            life="pending",
            launched_at=self._clock.now(),
            shared_folder=None if folder is None else str(folder),
            placement=request.placement,
        )

    def _start(self, launch: Launch) -> Launch:
        failed: list[LaunchFault] = []
        for node in launch.nodes:
            try:
                self._driver.start(node, launch.request)
            except OSError as error:
                self._table.move(node.node_id, ("pending", "stopping"), "terminated", self._clock.now())
                failed.append(LaunchFault(node.instance_type, node.zone, "other", f"cannot start a process: {error}"))
            else:
                self._keep_or_stop(node)
        return self._table.add_faults(launch, tuple(failed)) if failed else launch

    def _keep_or_stop(self, node: Node) -> None:
        """End the node at once when somebody asked for its end while it came up."""
        if not self._table.move(node.node_id, ("pending",), "running"):
            self._driver.stop(node.run_id, node.node_id)


def _places(request: LaunchRequest, faults: Faults) -> tuple[list[tuple[str, str]], tuple[LaunchFault, ...]]:
    """Choose a (type, zone) for each node: best type first, then zones in order, as much as each has."""
    places: list[tuple[str, str]] = []
    short: list[LaunchFault] = []
    named = request.zones or tuple(request.region + letter for letter in ZONES)
    zones = sorted(named, key=request.last_zones.__contains__)
    for instance_type in request.instance_types:
        for zone in zones:
            wanted = request.count - len(places)
            available = faults.available(instance_type, zone)
            granted = wanted if available is None else min(wanted, available)
            places += [(instance_type, zone)] * granted
            if granted < wanted:
                message = f"{wanted} asked, {granted} to be had (declared fault)"
                short.append(LaunchFault(instance_type, zone, "capacity", message))
    return places, tuple(short)
