"""Finds what the kernel named: block devices by their namespace's UUID, connections by their subsystem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headrace_agent.machine import NVME_DISK

NAMESPACE = re.compile(r"namespace\(([0-9a-f-]{36})\)")
CONTROLLERS = re.compile(r"controllers\(([A-Za-z0-9.:-]+)\)")
SYSTEM = Path("/sys")


class NotThere(Exception):
    """A device is not, or not yet, there; the text names it."""


def namespace(uuid: str) -> str:
    """Return the word that stands for the device of a namespace, until it is known."""
    return f"namespace({uuid})"


def with_devices(text: str, system: Path = SYSTEM) -> str:
    """Return the text with each `namespace(UUID)` replaced by its device; raises NotThere."""
    return NAMESPACE.sub(lambda found: device_of(found[1], system), text)


def device_of(uuid: str, system: Path = SYSTEM) -> str:
    """Return the device of a namespace that came over the fabric; hidden paths of multipath are passed over."""
    for entry in sorted((system / "block").glob("nvme*")):
        if NVME_DISK.match(entry.name) and read(entry / "uuid") == uuid:
            return f"/dev/{entry.name}"
    raise NotThere(f"no connected namespace has the UUID {uuid}")


def with_controllers(path: str, system: Path = SYSTEM) -> list[str]:
    """Return the path once for each controller that its `controllers(NQN)` stands for; without one, the path itself."""
    found = CONTROLLERS.search(path)
    if found is None:
        return [path]
    return [path.replace(found[0], one.name) for one in controllers(found[1], system)]


def controllers(nqn: str, system: Path = SYSTEM) -> Iterator[Path]:
    """Yield the folder of each connection to the subsystem."""
    for folder in sorted((system / "class/nvme-fabrics/ctl").glob("nvme*")):
        if read(folder / "subsysnqn") == nqn:
            yield folder


def read(path: Path | str) -> str:
    """Return what a file of the kernel holds, stripped, or an empty text where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
