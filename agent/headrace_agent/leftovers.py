"""What is set up on this machine now, read from the kernel alone: all that a release has to undo."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.kernel_names import connections, read
from headrace_agent.machine import MAPPED, NVMET, SOFT_ROCE, mapped_names
from headrace_agent.mounts import MOUNTS, mount_points

OURS = "nqn.2026-01.io.headrace:"
"""What the names of our subsystems begin with; others' are left alone."""


@dataclass(frozen=True)
class Connection:
    """One connection to a subsystem of another node; `state` is the kernel's, `live` in good days."""

    name: str
    nqn: str
    state: str


@dataclass(frozen=True)
class Served:
    """One subsystem that this node serves, and what it holds."""

    nqn: str
    hosts: tuple[str, ...]
    namespace_ids: tuple[int, ...]


@dataclass(frozen=True)
class Leftovers:
    """All that is there; empty when nothing is left."""

    mounts: tuple[str, ...] = ()
    """Newest first, so that each can be unmounted before what it stands on."""
    arrays: tuple[str, ...] = ()
    connections: tuple[Connection, ...] = ()
    served: tuple[Served, ...] = ()
    hosts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    soft_roce: tuple[str, ...] = ()

    def in_words(self) -> list[str]:
        """Return a line for each thing that is there."""
        return [
            *(f"mounted: {one}" for one in self.mounts),
            *(f"array: {one}" for one in self.arrays),
            *(f"connected: {one.nqn} by {one.name}, {one.state}" for one in self.connections),
            *(f"served: {one.nqn}" for one in self.served),
            *(f"host known to the target: {one}" for one in self.hosts),
            *(f"port of the target: {one}" for one in self.ports),
            *(f"mapped: {one}" for one in self.mapped),
            *(f"soft-RoCE: {one}" for one in self.soft_roce),
        ]


def leftovers(
    folders: Iterable[Path], system: Path = Path("/sys"), nvmet: Path = NVMET, mounts: Path = MOUNTS
) -> Leftovers:
    """Return what is there; `folders` are those on and below which our file systems are mounted."""
    rooms = [str(one) for one in folders]
    found = [one for one in mount_points(mounts.read_text()) if _is_within(one, rooms)]
    served = tuple(_served(one) for one in sorted((nvmet / "subsystems").glob(f"{OURS}*")))
    return Leftovers(
        mounts=tuple(reversed(found)),
        arrays=tuple(_arrays(system)),
        connections=tuple(_connections(system)),
        served=served,
        hosts=tuple(sorted(one.name for one in (nvmet / "hosts").glob("*"))),
        ports=tuple(sorted(one.name for one in (nvmet / "ports").glob("*"))),
        mapped=tuple(sorted(mapped_names(system))),
        soft_roce=(SOFT_ROCE,) if (system / "class/infiniband" / SOFT_ROCE).exists() else (),
    )


def served_as(nqn: str, nvmet: Path = NVMET) -> Served | None:
    """Return what a subsystem holds that this node serves, or None when it serves none of that name."""
    folder = nvmet / "subsystems" / nqn
    return _served(folder) if folder.is_dir() else None


def _is_within(point: str, rooms: Iterable[str]) -> bool:
    return any(point == room or point.startswith(f"{room}/") for room in rooms)


def _arrays(system: Path) -> Iterable[str]:
    for entry in sorted((system / "block").glob("md*")):
        if any(_is_ours(one) for one in (entry / "slaves").glob("*")):
            yield f"/dev/{entry.name}"


def _is_ours(slave: Path) -> bool:
    nqn = read(slave / "device/subsysnqn") or read(slave / "device/device/subsysnqn")
    return read(slave / "dm/name").startswith(MAPPED) or nqn.startswith(OURS)


def _connections(system: Path) -> Iterable[Connection]:
    for entry in connections(system):
        nqn = read(entry / "subsysnqn")
        if nqn.startswith(OURS):
            yield Connection(entry.name, nqn, read(entry / "state"))


def _served(folder: Path) -> Served:
    hosts = sorted(one.name for one in (folder / "allowed_hosts").glob("*"))
    namespaces = sorted(int(one.name) for one in (folder / "namespaces").glob("*"))
    return Served(folder.name, tuple(hosts), tuple(namespaces))
