"""What this machine has: local NVMe disks, a network device and an address."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

NVME_DISK = re.compile(r"^nvme\d+n\d+$")
"""Leaves out the hidden paths nvmeXcYnZ of native multipath."""

NETWORK_DISK_MODEL = "Amazon Elastic Block Store"


@dataclass(frozen=True)
class Disk:
    """One local disk; `sectors` are of 512 bytes, None where only a plan is printed."""

    path: str
    sectors: int | None


@dataclass(frozen=True)
class Machine:
    """The facts that commands need; `address` is where other nodes reach this one.

    One that `is_imagined` stands in where commands are only shown.
    """

    disks: tuple[Disk, ...]
    network_device: str
    address: str
    is_imagined: bool = False


def imagined_machine(disks: int) -> Machine:
    """Return a stand-in for printing what a machine with that many disks would do."""
    return Machine(tuple(Disk(f"/dev/nvme{number}n1", None) for number in range(1, disks + 1)), "eth0", "ADDRESS", True)


def this_machine(system: Path = Path("/sys")) -> Machine:
    """Return what this machine has, its disks in the order of their serial numbers, which survives a reboot."""
    found = sorted(
        (_serial(entry), entry.name, int((entry / "size").read_text()))
        for entry in (system / "block").iterdir()
        if NVME_DISK.match(entry.name) and _is_local(entry)
    )
    disks = tuple(Disk(f"/dev/{name}", sectors) for _, name, sectors in found)
    return Machine(disks, _default_device(Path("/proc/net/route")), _own_address())


def _is_local(entry: Path) -> bool:
    """Tell whether a disk is on the PCIe bus and is no network volume."""
    device = entry / "device"
    transport = _text(device / "transport") or _text(device / "device" / "transport")
    return transport in ("", "pcie") and _text(device / "model") != NETWORK_DISK_MODEL


def _serial(entry: Path) -> str:
    return _text(entry / "device" / "serial")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _default_device(routes: Path) -> str:
    """Return the device of the default route (the destination 00000000 in /proc/net/route)."""
    rows = [line.split() for line in routes.read_text().splitlines()[1:]]
    return next((row[0] for row in rows if row[1] == "00000000"), "eth0")


def _own_address() -> str:
    """Return the address this machine speaks from; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
