"""The command lines of QEMU: a hub without a machine, and guests that join it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

QEMU = "qemu-system-x86_64"
HUB_PORTS = 16
NETWORK = "192.168.77"
FIRST_HOST = 11
HOST_ADDRESS = "10.0.2.2"
"""Where a guest reaches the loopback of the machine that runs it (QEMU's user network)."""

MEMORY_MIB = 1024
SOFTWARE = "tcg,thread=multi,tb-size=256"
KERNEL_LINE = (
    "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off clocksource=acpi_pm tsc=unstable no_timer_check edd=off"
)
"""An emulated guest measures its TSC wrong when it boots on a busy machine, and its clock then ran 8 times too fast."""


@dataclass(frozen=True)
class Guest:
    """One virtual machine to be: its folder, its place at the hub, and its empty disks."""

    name: str
    folder: Path
    hub: Path
    port: int
    kernel: Path
    initial_files: Path
    disks: tuple[Path, ...] = ()
    accelerator: str = SOFTWARE
    memory_mib: int = MEMORY_MIB
    processors: int = 1

    @property
    def address(self) -> str:
        """Address on the fabric."""
        return address_of(self.port)

    @property
    def agent(self) -> Path:
        """Socket of its guest agent."""
        return self.folder / "qga.sock"


def address_of(port: int) -> str:
    """Return the fabric address of the guest at that port of the hub."""
    return f"{NETWORK}.{FIRST_HOST + port}"


def hub_command(folder: Path) -> tuple[str, ...]:
    """Return the command of a hub: frames between all guests, none lost, nothing of this machine's network touched."""
    ports: list[str] = []
    for port in range(HUB_PORTS):
        ports += ["-netdev", f"stream,id=p{port},server=on,addr.type=unix,addr.path={port}.sock"]
        ports += ["-netdev", f"hubport,id=h{port},hubid=1,netdev=p{port}"]
    return (QEMU, "-machine", "none", "-nodefaults", "-display", "none", "-name", f"hub-{folder.name}", *ports)


def guest_command(guest: Guest) -> tuple[str, ...]:
    """Return the command of a guest; sockets are named from its folder, since their names may not be long.

    It may have one processor more than it has: where there can be one only, QEMU emulates `lock` and the like without
    a barrier (CF_PARALLEL in its accel/tcg), so that a driver and its virtual device can miss each other's words. A
    network card was seen to stand still for good, which this would explain.
    """
    line = f"{_kernel_line(guest)} headrace.name={guest.name} headrace.address={guest.address}"
    return (
        *(QEMU, "-name", guest.name, "-accel", guest.accelerator, "-cpu", _processor(guest), "-machine", "q35"),
        *("-smp", f"{guest.processors},maxcpus={guest.processors + 1}"),
        *("-m", str(guest.memory_mib), "-nodefaults", "-no-user-config"),
        *("-display", "none", "-no-reboot", "-kernel", str(guest.kernel), "-initrd", str(guest.initial_files)),
        *("-append", line, "-serial", "file:console.log", "-device", "virtio-serial-pci"),
        *("-chardev", "socket,path=qga.sock,server=on,wait=off,id=qga0"),
        *("-device", "virtserialport,chardev=qga0,name=org.qemu.guest_agent.0"),
        *("-netdev", f"stream,id=n0,server=off,addr.type=unix,addr.path=hub/{guest.port}.sock"),
        *("-device", f"virtio-net-pci,netdev=n0,mac=52:54:00:77:00:{guest.port:02x},romfile="),
        *("-netdev", "user,id=n1", "-device", f"virtio-net-pci,netdev=n1,mac=52:54:00:78:00:{guest.port:02x},romfile="),
        *("-device", "virtio-rng-pci"),
        *_disks(guest.name, guest.disks),
    )


def _processor(guest: Guest) -> str:
    """Return what the processor can do: all, but where it is emulated, what only costs there.

    A string instruction is emulated step by step, a byte or a word each; without ERMS the kernel copies by others.
    """
    return "max,la57=off,avx=off,avx2=off,erms=off,fsrm=off" if guest.accelerator == SOFTWARE else "max"


def _kernel_line(guest: Guest) -> str:
    return f"{KERNEL_LINE} clearcpuid=rep_good" if guest.accelerator == SOFTWARE else KERNEL_LINE


def _disks(name: str, disks: Sequence[Path]) -> list[str]:
    words: list[str] = []
    for number, disk in enumerate(disks):
        words += ["-drive", f"file={disk},if=none,id=d{number},format=raw,cache=unsafe,discard=unmap"]
        words += ["-device", f"nvme,drive=d{number},serial={name[-14:]}-{number}"]
    return words


def blank_disks(folder: Path, count: int, size_bytes: int) -> tuple[Path, ...]:
    """Return that many empty disks in the folder, which take room only as they are written."""
    made = []
    for number in range(count):
        path = folder / f"disk-{number}.raw"
        with path.open("wb") as stream:
            stream.truncate(size_bytes)
        made.append(path)
    return tuple(made)


def join_layers(layers: Sequence[Path], target: Path) -> Path:
    """Return one file of all layers, which the kernel unpacks one over another."""
    with target.open("wb") as joined:
        for layer in layers:
            with layer.open("rb") as stream:
                shutil.copyfileobj(stream, joined)
    return target
