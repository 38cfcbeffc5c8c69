"""The commands that make, find and mount a stripe with XFS (facts: md(4), mkfs.xfs(8))."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace_agent.actions import Action, Run, Unless
from headrace_agent.config import Volume
from headrace_agent.fields import ConfigError
from headrace_agent.names import plain_name, uuid_text

LOG_STRIPE_BYTES_MAX = 256 * 1024
"""mkfs.xfs refuses a larger log stripe unit; with a larger stripe it warns and takes 32 KiB, which is said here."""

LOG_STRIPE_BYTES_ELSE = 32 * 1024
BLOCK_BYTES = 4096
LABEL_CHARACTERS = 12
"""Longest label of XFS."""

APPEAR_TRIES = 20
READ_OPTIONS = "ro,norecovery,nouuid,noatime,nodiratime,inode64"
WRITE_OPTIONS = "noatime,nodiratime,largeio,inode64"


def array_device(volume: Volume) -> str:
    """Return the device of the volume's array."""
    return f"/dev/md/{plain_name(volume.array_name)}"


def array_uuid(volume: Volume) -> str:
    """Return the array's UUID in the form that mdadm prints."""
    digits = uuid_text(volume.array_uuid).replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def make_array(volume: Volume, members: Sequence[str]) -> list[Action]:
    """Return the commands for a striped array over the members in their order; found again, it is only assembled."""
    if len(members) != volume.members:
        raise ConfigError(
            f"volume {volume.volume_id} is a stripe over {volume.members} members, and {len(members)} are on this "
            "machine; stripes over several machines are not made by this version"
        )
    device = array_device(volume)
    there = Unless("exists", device)
    create = (
        *("mdadm", "--create", device, "--run", "--metadata=1.2", "--homehost=any"),
        *(f"--name={volume.array_name}", f"--uuid={array_uuid(volume)}", "--level=0"),
        *(f"--chunk={_stripe_bytes(volume) // 1024}", f"--raid-devices={len(members)}"),
        *(("--force",) if len(members) == 1 else ()),
        *members,
    )
    return [
        Run(("mdadm", "--assemble", device, f"--uuid={array_uuid(volume)}", "--run", *members), there, may_fail=True),
        Run(create, there),
    ]


def make_file_system(volume: Volume) -> Action:
    """Return the command that formats the array, its geometry that of the stripe; a formatted one is left alone."""
    stripe_bytes = _stripe_bytes(volume)
    log_bytes = stripe_bytes if stripe_bytes <= LOG_STRIPE_BYTES_MAX else LOG_STRIPE_BYTES_ELSE
    device, uuid = array_device(volume), uuid_text(volume.filesystem_uuid)
    return Run(
        (
            *("mkfs.xfs", "-q", "-K", "-m", f"uuid={uuid}"),
            *("-L", plain_name(volume.volume_id)[:LABEL_CHARACTERS]),
            *("-d", f"su={stripe_bytes},sw={volume.members}", "-l", f"su={log_bytes}", device),
        ),
        Unless("formatted", f"{device}={uuid}"),
    )


def mount(volume: Volume, folder: Path, options: str) -> list[Action]:
    """Return the commands that mount the volume's array on the folder."""
    argv = ("mount", "-t", "xfs", "-o", options, array_device(volume), str(folder))
    return [Run(("mkdir", "-p", str(folder))), Run(argv, Unless("mounted", str(folder)))]


def find_array_read_only(volume: Volume) -> Action:
    """Return the command that assembles the array from whatever devices carry its UUID, never to be written."""
    device = array_device(volume)
    argv = ("mdadm", "--assemble", device, "--config=partitions", f"--uuid={array_uuid(volume)}", "--readonly", "--run")
    return Run(argv, Unless("exists", device), tries=APPEAR_TRIES)


def _stripe_bytes(volume: Volume) -> int:
    if volume.stripe_unit_bytes < BLOCK_BYTES or volume.stripe_unit_bytes % BLOCK_BYTES:
        raise ConfigError(
            f"volume {volume.volume_id}: a stripe unit of {volume.stripe_unit_bytes} bytes is not a multiple of "
            f"{BLOCK_BYTES}"
        )
    return volume.stripe_unit_bytes
