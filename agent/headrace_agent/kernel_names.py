"""Finds what the kernel named: block devices by their namespace's UUID, connections by their subsystem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headrace_agent.machine import NVME_DISK

NAMESPACE = re.compile(r"namespace\(([0-9a-f-]{36})\)")
QUEUES = re.compile(r"queues\(([0-9a-f-]{36})\)")
CONTROLLERS = re.compile(r"controllers\(([A-Za-z0-9.:-]+)\)")
SYSTEM = Path("/sys")


class NotThere(Exception):
    """A device is not, or not yet, there; the text names it."""


def namespace(uuid: str) -> str:
    """Return the word that stands for the device of a namespace, until it is known."""
    return f"namespace({uuid})"


def uuids_in(text: str) -> list[str]:
    """Return the UUID of each namespace that the text stands for."""
    return NAMESPACE.findall(text)


def with_devices(text: str, system: Path = SYSTEM) -> str:
    """Return the text with each `namespace(UUID)` replaced by its device; raises NotThere."""
    return NAMESPACE.sub(lambda found: device_of(found[1], system), text)


def device_of(uuid: str, system: Path = SYSTEM) -> str:
    """Return the device of a namespace that came over the fabric; hidden paths of multipath are passed over."""
    for entry in sorted((system / "block").glob("nvme*")):
        if NVME_DISK.match(entry.name) and read(entry / "uuid") == uuid:
            return f"/dev/{entry.name}"
    raise NotThere(f"no connected namespace has the UUID {uuid}")


def is_served(uuid: str, system: Path = SYSTEM) -> bool:
    """Tell whether a namespace is there and one of the connections to it lives."""
    paths = [entry.resolve() for entry in (system / "block").glob("nvme*") if read(entry / "uuid") == uuid]
    return any(read(one.parent / "state") == "live" for one in paths)


def with_names(path: str, system: Path = SYSTEM) -> list[str]:
    """Return the path once for each thing that its name stands for, or the path itself where it holds no such name.

    `controllers(NQN)` stands for the connections to a subsystem, `queues(UUID)` for the block devices through which a
    namespace's requests go: with native multipath those are the hidden ones, one for each connection.
    """
    if found := CONTROLLERS.search(path):
        return [path.replace(found[0], one.name) for one in controllers(found[1], system)]
    if found := QUEUES.search(path):
        return [path.replace(found[0], one) for one in _queues(found[1], system)]
    return [path]


def _queues(uuid: str, system: Path) -> Iterator[str]:
    return (entry.name for entry in sorted((system / "block").glob("nvme*")) if read(entry / "uuid") == uuid)


def connections(system: Path = SYSTEM) -> list[Path]:
    """Return the folder of each connection, whatever it leads to."""
    return sorted((system / "class/nvme-fabrics/ctl").glob("nvme*"))


def controllers(nqn: str, system: Path = SYSTEM) -> Iterator[Path]:
    """Yield the folder of each connection to the subsystem."""
    for folder in connections(system):
        if read(folder / "subsysnqn") == nqn:
            yield folder


def read(path: Path | str) -> str:
    """Return what a file of the kernel holds, stripped, or an empty text where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
