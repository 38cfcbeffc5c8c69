"""Tells whether a machine is in a state, each read from the kernel or from the devices themselves."""

from __future__ import annotations

import glob
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from headrace_agent.actions import Unless
from headrace_agent.device_start import first_bytes
from headrace_agent.kernel_names import (
    SYSTEM,
    NotThere,
    connections,
    controllers,
    is_served,
    read,
    uuids_in,
    with_devices,
)
from headrace_agent.machine import mapped_names
from headrace_agent.mounts import is_mounted

BLOCK_BYTES = 4096
STILL_SECONDS = 0.5
XFS_MAGIC, XFS_UUID_AT, XFS_IN_PROGRESS_AT = b"XFSB", 32, 126
"""Where a superblock holds its UUID and `sb_inprogress` (Linux fs/xfs/libxfs/xfs_format.h, struct xfs_dsb)."""

MD_MAGIC, MD_AT, MD_UUID_AT = 0xA92B4EFC, 4096, 16
"""Where metadata 1.2 lies and holds the array's UUID (Linux include/uapi/linux/raid/md_p.h)."""

COMMAND_SECONDS = 30
NEVER_GUESSED = ("striped", "begun", "formatted")


def holds(unless: Unless) -> bool:
    """Tell whether the machine is in that state; what is not there is in no state.

    Of arrays and file systems that is not said: raises NotThere or OSError, since what cannot be read must not be taken
    for blank.
    """
    try:
        return STATES[unless.kind](unless.value)
    except (NotThere, OSError):
        if unless.kind in NEVER_GUESSED:
            raise
        return False


def _exists(value: str) -> bool:
    """Tell whether a path is there; a link that leads nowhere, as mdadm may leave one, does not count."""
    return any(os.path.exists(one) for one in glob.glob(value))  # noqa: PTH110, PTH207 - absolute


def _present(value: str) -> bool:
    return all(os.path.exists(with_devices(one)) for one in value.split(","))  # noqa: PTH110 - device paths


def _connected(value: str) -> bool:
    nqn, _, address = value.partition("@")
    return any(f"traddr={address}," in f"{read(one / 'address')}," for one in controllers(nqn))


def _reachable(nqn: str) -> bool:
    return any(read(one / "state") == "live" for one in controllers(nqn))


def _is_busy(transport: str) -> bool:
    return any(read(one / "transport") == transport for one in connections())


def _reads(value: str) -> bool:
    path, _, text = value.partition("=")
    return read(path) == text


def _formatted(value: str) -> bool:
    device, _, wanted = value.partition("=")
    block = first_bytes(device, BLOCK_BYTES)
    found = block[XFS_UUID_AT : XFS_UUID_AT + 16]
    return block[:4] == XFS_MAGIC and found == uuid.UUID(wanted).bytes and block[XFS_IN_PROGRESS_AT] == 0


def _members(value: str) -> list[bool]:
    array_uuid, _, members = value.partition("=")
    return [_is_member(with_devices(one), array_uuid) for one in members.split(",")]


def _is_member(device: str, array_uuid: str) -> bool:
    block = first_bytes(device, MD_AT + BLOCK_BYTES)[MD_AT:]
    is_md = int.from_bytes(block[:4], "little") == MD_MAGIC
    return is_md and block[MD_UUID_AT : MD_UUID_AT + 16] == uuid.UUID(array_uuid).bytes


def _in_array(value: str) -> bool:
    """Tell whether a member takes part; one that the array gave up keeps its slot, so the slot's state decides."""
    array, _, member = (with_devices(part) for part in value.partition("="))
    slot = kernel_folder(array) / "md" / f"dev-{kernel_folder(member).name}"
    return slot.is_dir() and "faulty" not in read(slot / "state")


def _assembled(value: str) -> bool:
    """Tell whether an array runs; its path says nothing, since without udev nobody removes it."""
    return read(kernel_folder(value) / "md/array_state") not in ("", "clear", "inactive")


def _stopped(value: str) -> bool:
    try:
        return not _assembled(value)
    except OSError:
        return True


def _marked(value: str) -> bool:
    device, _, text = value.partition("=")
    return first_bytes(with_devices(device), BLOCK_BYTES).rstrip(b"\0") == f"{text}\n".encode()


def _told(value: str) -> bool:
    """Read nothing over a connection that is dead: the kernel would wait for it."""
    return not all(is_served(one) for one in uuids_in(value)) or _marked(value)


def _sealed(value: str) -> bool:
    done = subprocess.run(
        ("dmsetup", "table", value), capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    return done.returncode == 0 and " flakey " in done.stdout and "error_writes" in done.stdout


def _still(value: str) -> bool:
    """Compare the count of completed writes (kernel Documentation/block/stat, field 5) across a moment."""
    path = kernel_folder(value) / "stat"
    before = path.read_text().split()[4]
    time.sleep(STILL_SECONDS)
    return before == path.read_text().split()[4]


def kernel_folder(device: str) -> Path:
    """Return the kernel's folder of a block device, by its number: without udev, mapped devices are no links."""
    number = os.stat(device).st_rdev  # noqa: PTH116 - a device path
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


STATES: Mapping[str, Callable[[str], bool]] = {
    "exists": _exists,
    "absent": lambda value: not os.path.lexists(value),
    "present": _present,
    "mounted": lambda value: is_mounted(Path(value)),
    "unmounted": lambda value: not is_mounted(Path(value)),
    "connected": _connected,
    "reachable": _reachable,
    "disconnected": lambda value: not list(controllers(value)),
    "reads": _reads,
    "formatted": _formatted,
    "striped": lambda value: all(_members(value)),
    "begun": lambda value: any(_members(value)),
    "in-array": _in_array,
    "assembled": _assembled,
    "stopped": _stopped,
    "marked": _marked,
    "told": _told,
    "mapped": lambda value: value in mapped_names(SYSTEM),
    "sealed": _sealed,
    "still": _still,
    "busy": _is_busy,
    "idle": lambda value: not _is_busy(value),
}
