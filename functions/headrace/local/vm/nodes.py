"""Nodes as virtual machines: each is a supervising process of this machine, so that all that ends processes ends it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headrace.domain.catalog import Catalog
from headrace.domain.launch import LaunchRequest
from headrace.local.process_nodes import ProcessNodes
from headrace.local.vm.image import Image
from headrace.local.vm.machine import start_hub
from headrace.local.vm.qemu import HUB_PORTS, address_of, blank_disks
from headrace.ports import Node

SUPERVISOR = (sys.executable, "-m", "headrace.local.vm.supervise")
READY_FILE = "guest-ready"
DISK_BYTES = 4 * 1024**3
"""Of each emulated disk, whatever the type's have; it takes room only as it is written."""


class NoPortLeft(OSError):
    """More virtual machines were asked for than the hub has ports."""


class VmNodes:
    """The driver of nodes that are guests, below `root`/<run id>/<node id>; `close` ends all of them and the hub.

    The supervisor of a guest carries the node's marks, and so does QEMU, its child: whoever ends the node's processes,
    or finds them after a crash, finds the guest.
    """

    def __init__(
        self,
        processes: ProcessNodes,
        root: Path,
        environment: Mapping[str, str],
        prepare: Callable[[], tuple[Image, Path]],
        catalog: Callable[[str], Catalog],
    ) -> None:
        self._processes = processes
        self._root = root
        self._environment = dict(environment)
        self._prepare = prepare
        self._catalog = catalog
        self._lock = threading.Lock()
        self._ports: dict[tuple[str, str], int] = {}
        self._hub: subprocess.Popen[bytes] | None = None

    def folder(self, run_id: str, node_id: str) -> Path | None:  # noqa: ARG002 - a port
        """Return nothing: guests share no folder."""
        return None

    def address(self, run_id: str, node_id: str) -> str:
        """Return the node's address on the fabric. Raises NoPortLeft."""
        with self._lock:
            taken = set(self._ports.values())
            free = [port for port in range(HUB_PORTS) if port not in taken]
            if not free:
                raise NoPortLeft(f"at most {HUB_PORTS} virtual machines run at a time; ask for fewer nodes")
            self._ports[run_id, node_id] = free[0]
            return address_of(free[0])

    def start(self, node: Node, request: LaunchRequest) -> None:
        """Make the guest's disks and start its supervisor; it is online when the guest has booted. Raises OSError."""
        image, initial_files = self._prepare()
        self._start_hub()
        folder = self._processes.folder(node.run_id, node.node_id)
        folder.mkdir(parents=True, exist_ok=True)
        machine = self._catalog(request.region).find(node.instance_type)
        guest = {
            "port": self._ports[node.run_id, node.node_id],
            "hub": str(self._root / "hub"),
            "kernel": str(image.kernel),
            "accelerator": image.accelerator,
            "initial_files": str(initial_files),
            "disks": [str(one) for one in blank_disks(folder, machine.disk_count if machine else 0, DISK_BYTES)],
            "node": {**self._processes.node_file(node, request), "process_node": False, "folder": "/var/lib/headrace"},
        }
        (folder / "guest.json").write_text(json.dumps(guest, indent=1))
        self._processes.start(node, request)

    def stop(self, run_id: str, node_id: str) -> None:
        """Begin to end the guest and return at once; safe to repeat."""
        self._processes.stop(run_id, node_id)

    def present(self, expected: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return (run id, node id) of every node of which anything runs; ports of the others are free again."""
        seen = self._processes.present(expected)
        with self._lock:
            gone = [key for key in self._ports if key in expected and key not in seen]
            for key in gone:
                del self._ports[key]
        return seen

    def close(self) -> None:
        """End every guest and the hub."""
        self._processes.close()
        if self._hub is not None:
            self._hub.kill()
            self._hub.wait()
            self._hub = None

    def _start_hub(self) -> None:
        with self._lock:
            if self._hub is None:
                self._hub = start_hub(self._root / "hub", self._environment)


class VmDocumentTargets:
    """What running documents needs from nodes that are guests."""

    def __init__(self, processes: ProcessNodes) -> None:
        self._processes = processes

    def folder(self, run_id: str, node_id: str) -> Path:
        """Return the node's folder on this machine."""
        return self._processes.folder(run_id, node_id)

    def environment(self, run_id: str, node_id: str) -> dict[str, str]:
        """Return the environment of the process that brings a script into the guest."""
        return self._processes.environment(run_id, node_id)

    def has_agent(self, run_id: str, node_id: str) -> bool:
        """Tell whether the guest has booted and its supervisor lives."""
        ready = self._processes.folder(run_id, node_id) / READY_FILE
        return ready.exists() and self._processes.has_agent(run_id, node_id)

    def command(self, run_id: str, node_id: str, script: str) -> Sequence[str]:
        """Return the command that runs the script in the guest."""
        socket = self._processes.folder(run_id, node_id) / "qga.sock"
        return (sys.executable, "-m", "headrace.local.vm.carry", str(socket), script)
