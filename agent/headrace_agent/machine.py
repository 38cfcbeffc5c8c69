"""What this machine has: local NVMe disks, network and RDMA devices, what is sealed and who is served already."""

from __future__ import annotations

import fcntl
import re
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace_agent.device_start import first_bytes

NVME_DISK = re.compile(r"^nvme\d+n\d+$")
"""Leaves out the hidden paths nvmeXcYnZ of native multipath."""

NETWORK_DISK_MODEL = "Amazon Elastic Block Store"
MAPPED = "headrace-"
"""What the names of our device-mapper devices begin with."""

FILLED = "headrace filled "
"""What a member's first block begins with when its volume is complete; the array's UUID follows."""

SOFT_ROCE = "rxe0"
KEY_MODULES = ("nvme-auth", "nvme-common")
NVMET = Path("/sys/kernel/config/nvmet")
COMMAND_SECONDS = 30
SIOCGIFADDR = 0x8915
"""Asks for a network device's address (netdevice(7))."""

NOT_RC = ("efa", "rxe")
"""RDMA devices by driver that are not taken for NVMe: EFA offers no reliable connected queue pairs, rxe is ours."""


@dataclass(frozen=True)
class Disk:
    """One local disk; `sectors` are of 512 bytes, None where only a plan is printed.

    `holds` is what was found on it, `type uuid`, empty on a blank one and on one that is cut already.
    """

    path: str
    sectors: int | None
    holds: str = ""


@dataclass(frozen=True)
class Machine:
    """The facts that commands need; `address` is where other nodes reach this one.

    `sealed` names mapped slices that refuse writes, `filled` those and others whose filling is finished. `served` maps
    the subsystems that are set up already to the hosts that each admits. Without the module dm-flakey it cannot seal.
    `keyed` are the addresses at which it shows a key.
    """

    disks: tuple[Disk, ...]
    network_device: str
    address: str
    rdma_device: str | None = None
    sealed: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    can_seal: bool = True
    served: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()


def imagined_machine(disks: int) -> Machine:
    """Return a stand-in for printing what a machine with that many disks would do."""
    return Machine(tuple(Disk(f"/dev/nvme{number}n1", None) for number in range(1, disks + 1)), "eth0", "ADDRESS")


def this_machine(address: str, system: Path = Path("/sys"), nvmet: Path = NVMET) -> Machine:
    """Return what this machine has, its disks in the order of their serial numbers, which survives a reboot."""
    found = sorted(
        (_serial(entry), entry.name, int((entry / "size").read_text()))
        for entry in (system / "block").iterdir()
        if NVME_DISK.match(entry.name) and _is_local(entry)
    )
    mapped = mapped_names(system)
    sealed = frozenset(name for name in mapped if "error_writes" in _output(("dmsetup", "table", name)))
    return Machine(
        disks=tuple(Disk(f"/dev/{name}", sectors, _holds(system, name)) for _, name, sectors in found),
        network_device=_device_of(address, system),
        address=address,
        rdma_device=rdma_device(system),
        sealed=sealed,
        filled=sealed | {name for name in mapped if _is_filled(f"/dev/mapper/{name}")},
        can_seal=can_load("dm-flakey"),
        served=_served(nvmet),
    )


def mapped_names(system: Path) -> dict[str, str]:
    """Return our device-mapper devices: the kernel's name, such as dm-3, by ours."""
    named = {_text(entry / "dm/name"): entry.name for entry in (system / "block").glob("dm-*")}
    return {name: kernel for name, kernel in named.items() if name.startswith(MAPPED)}


def rdma_device(system: Path) -> str | None:
    """Return the first RDMA device with reliable connections that is not software, or None."""
    for entry in sorted((system / "class/infiniband").glob("*")):
        driver = (entry / "device/driver").resolve().name
        if not driver.startswith(NOT_RC) and not entry.name.startswith(NOT_RC):
            return entry.name
    return None


def _is_local(entry: Path) -> bool:
    """Tell whether the disk is in this machine: not one of another over the fabric, not a network volume."""
    device = entry / "device"
    transport = _text(device / "transport") or _text(device / "device" / "transport")
    is_multipath = (device / "subsysnqn").exists() and not transport
    paths = [_text(one / "transport") for one in device.glob("nvme*")] if is_multipath else [transport]
    return all(one in ("", "pcie") for one in paths) and _text(device / "model") != NETWORK_DISK_MODEL


def _holds(system: Path, name: str) -> str:
    """Return what is on a disk; of one that is cut into our slices already it is not asked again."""
    holders = (system / "block" / name / "holders").glob("dm-*")
    if any(_text(one / "dm/name").startswith(MAPPED) for one in holders):
        return ""
    said = _output(("blkid", "-p", "-o", "export", f"/dev/{name}"))
    found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    return f"{found.get('TYPE') or found.get('PTTYPE', '')} {found.get('UUID', '')}".strip()


def can_load(module: str) -> bool:
    """Tell whether the kernel has the module, loaded, built in or not yet loaded, without loading it."""
    if Path("/sys/module", module.replace("-", "_")).exists():
        return True
    try:
        done = subprocess.run(
            ("modprobe", "-n", "-q", module), capture_output=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def can_show_keys(device: Path = Path("/dev/nvme-fabrics")) -> bool:
    """Tell whether this kernel can prove who it is (NVME_HOST_AUTH).

    It lists the options that it understands, but 6.1 lists this one also where it was built without: then the module
    that both ends share, nvme-auth or by its older name nvme-common, is not there either.
    """
    if not any(can_load(one) for one in KEY_MODULES):
        return False
    if not device.exists():
        _output(("modprobe", "nvme-fabrics"))
    return "dhchap_secret" in _text(device)


def _is_filled(device: str) -> bool:
    try:
        return first_bytes(device, len(FILLED)).decode("latin-1") == FILLED
    except OSError:
        return False


def _served(nvmet: Path) -> dict[str, frozenset[str]]:
    subsystems = (nvmet / "subsystems").glob("*:*")
    return {one.name: frozenset(host.name for host in (one / "allowed_hosts").iterdir()) for one in subsystems}


def _serial(entry: Path) -> str:
    return _text(entry / "device" / "serial")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _output(argv: tuple[str, ...]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _device_of(address: str, system: Path) -> str:
    """Return the network device that has the address, or eth0."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for entry in sorted((system / "class/net").glob("*")):
            try:
                answer = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", entry.name[:15].encode()))
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return entry.name
    return "eth0"
