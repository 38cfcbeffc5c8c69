"""Whether what this node uses over the fabric is really there: connections, and a read of every member."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace_agent.config import Import, NodeConfig, Volume
from headrace_agent.kernel_names import NotThere, controllers, device_of, read
from headrace_agent.mounts import is_mounted
from headrace_agent.states import kernel_folder
from headrace_agent.stripe_commands import array_device

PROBE_SECONDS = 5
PROBES_AT_ONCE = 32
AFTER_KILL_SECONDS = 0.5


def troubles(config: NodeConfig, volumes: Path, members: Collection[str] | None = None) -> list[str]:
    """Return what is wrong, in words; nothing when all is well. Only the given members are read, or all of them.

    md shows no failure of a RAID 0, and a mount outlives its devices, so each member is read past every cache.
    """
    found = lost_connections(config)
    used = [one for one in config.volumes if one.slices]
    found += [trouble for one in used for trouble in _mount(one, volumes)]
    chosen = [(one, uuid) for one in used for uuid in one.slices if members is None or uuid in members]
    with ThreadPoolExecutor(PROBES_AT_ONCE) as threads:
        found += [trouble for trouble in threads.map(lambda pair: _member(*pair), chosen) if trouble]
    return found + [trouble for one in used for trouble in _array(one)]


def lost_connections(config: NodeConfig) -> list[str]:
    """Return what is wrong with the connections alone, in words."""
    return [trouble for one in config.imports for trouble in _connection(one)]


def _connection(one: Import) -> Iterator[str]:
    paths = [
        path for path in controllers(one.subsystem_nqn) if f"traddr={one.address}," in f"{read(path / 'address')},"
    ]
    if not paths:
        yield f"not connected to {one.subsystem_nqn} at {one.address}"
    for path in paths:
        state = read(path / "state")
        if state != "live":
            yield f"the connection to {one.subsystem_nqn} at {one.address} is {state}"


def _mount(one: Volume, volumes: Path) -> Iterator[str]:
    folder = volumes / one.volume_id
    if not is_mounted(folder):
        yield f"volume {one.volume_id} is not mounted on {folder}"
        return
    try:
        os.statvfs(folder)
    except OSError as error:
        yield f"the file system of volume {one.volume_id} has shut down: {error.strerror}"


def _member(one: Volume, uuid: str) -> str | None:
    """Return why a member cannot be read. The read is a process of its own, since the kernel may hold on to it."""
    try:
        device = device_of(uuid)
    except NotThere as error:
        return f"volume {one.volume_id}: {error}"
    argv = ("dd", f"if={device}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct")
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(AFTER_KILL_SECONDS)
        return f"volume {one.volume_id}: {device} did not answer a read within {PROBE_SECONDS} s"
    return f"volume {one.volume_id}: {device} fails reads" if code else None


def _array(one: Volume) -> Iterator[str]:
    try:
        degraded = read(kernel_folder(array_device(one)) / "md/degraded")
    except OSError:
        yield f"volume {one.volume_id}: the array {array_device(one)} is not there"
        return
    if degraded not in ("", "0"):
        yield f"volume {one.volume_id}: {degraded} of {one.members} members are missing from its array"
