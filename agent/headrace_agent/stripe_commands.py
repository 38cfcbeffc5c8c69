"""The commands that make, find and mount a stripe with XFS (facts: md(4), mkfs.xfs(8))."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace_agent.actions import Action, Await, Run, Unless, Write
from headrace_agent.config import Volume
from headrace_agent.fields import ConfigError
from headrace_agent.kernel_names import uuids_in
from headrace_agent.names import plain_name, uuid_text

LOG_STRIPE_BYTES_MAX = 256 * 1024
"""mkfs.xfs refuses a larger log stripe unit; with a larger stripe it warns and takes 32 KiB, which is said here."""

LOG_STRIPE_BYTES_ELSE = 32 * 1024
BLOCK_BYTES = 4096
SECTOR_BYTES = 512
LABEL_CHARACTERS = 12
"""Longest label of XFS."""

APPEAR_SECONDS = 60
READ_AHEAD_STRIPES = 4
READ_AHEAD_BYTES_MAX = 16 * 1024**2
READ_OPTIONS = "ro,norecovery,nouuid,noatime,nodiratime,inode64"
WRITE_OPTIONS = "noatime,nodiratime,largeio,inode64"
HEAL_KIB_PER_S = {"min": 500_000, "max": 10_000_000}
"""How fast md heals. Its own minimum, all that it does while anything else is written, is 1,000 (kernel
Documentation/admin-guide/md.rst, speed_limit_min): weeks for one SSD, in which the next loss would be one of data."""

COPIES = {0: 1, 1: None, 10: 2}
"""How many members hold the same bytes, by level: all of them in a RAID 1."""


def no_auto_assembly() -> list[Action]:
    """Return what keeps the machine from assembling arrays by itself, at either place where mdadm looks."""
    folders = ("/etc/mdadm/mdadm.conf.d", "/etc/mdadm.conf.d")
    return [Write(f"{one}/headrace.conf", "AUTO -all\n", Unless("exists", f"{one}/headrace.conf")) for one in folders]


def array_device(volume: Volume) -> str:
    """Return the device of the volume's array."""
    return f"/dev/md/{plain_name(volume.array_name)}"


def array_uuid(volume: Volume) -> str:
    """Return the array's UUID in the form that mdadm prints."""
    digits = uuid_text(volume.array_uuid).replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def data_members(volume: Volume) -> int:
    """Return how many members hold different bytes; raises ConfigError for a level or number that md cannot do."""
    if volume.raid_level not in COPIES:
        raise ConfigError(f"volume {volume.volume_id}: the RAID level must be 0, 1 or 10, found {volume.raid_level}")
    copies = COPIES[volume.raid_level] or volume.members
    if volume.raid_level and (volume.members <= 1 or volume.members % copies):
        raise ConfigError(f"volume {volume.volume_id}: {volume.members} members cannot make a RAID {volume.raid_level}")
    return volume.members // copies


def fresh_volume(volume: Volume, members: Sequence[str], folder: Path) -> list[Action]:
    """Return what makes the volume and mounts it for writing, or finds it again."""
    return [
        *make_array(volume, members),
        make_file_system(volume),
        *_heal(volume, members),
        read_ahead(volume),
        *mount(volume, folder, WRITE_OPTIONS),
    ]


def make_array(volume: Volume, members: Sequence[str]) -> list[Action]:
    """Return the commands for an array over the members in their order; found again, it is only assembled.

    A RAID 0 is made anew when a member that is there is not one of it: then its bytes are lost in any case, or it
    never was complete. A RAID 1 or 10 is never made anew where any member knows it: the others are healed from that.
    """
    if len(members) != volume.members:
        raise ConfigError(
            f"volume {volume.volume_id} is an array of {volume.members} members, and {len(members)} were given"
        )
    data_members(volume)
    known = Unless("begun" if volume.raid_level else "striped", _membership(volume, members))
    first, stop, last = find_array(volume, members)
    return [
        Await(Unless("present", ",".join(members)), APPEAR_SECONDS),
        *no_scheduler(members),
        *(first, stop),
        Run(("wipefs", "-aq", *members), known),
        Run(_create(volume, members), known),
        last,
    ]


def find_array(volume: Volume, members: Sequence[str]) -> tuple[Run, Run, Run]:
    """Return the commands that assemble an array that was made before, the last one saying what is wrong with it.

    One that was cut off in the middle holds the members, so the array is stopped before it is tried again.
    """
    device = array_device(volume)
    there = Unless("assembled", device)
    assemble = ("mdadm", "--assemble", device, f"--uuid={array_uuid(volume)}", "--run", *members)
    return (
        Run(assemble, there, may_fail=True),
        Run(("mdadm", "--stop", device), there, may_fail=True),
        Run((*assemble, "--verbose"), there),
    )


def was_begun(volume: Volume, members: Sequence[str]) -> Unless:
    """Return the state in which a member knows the array."""
    return Unless("begun", _membership(volume, members))


def was_formatted(volume: Volume) -> Unless:
    """Return the state in which the array holds its whole file system."""
    return Unless("formatted", f"{array_device(volume)}={uuid_text(volume.filesystem_uuid)}")


def _membership(volume: Volume, members: Sequence[str]) -> str:
    return f"{uuid_text(volume.array_uuid)}={','.join(members)}"


def _create(volume: Volume, members: Sequence[str]) -> tuple[str, ...]:
    """Return the command for a new array; what its members hold already is in step, since they were wiped."""
    chunk_kib = _stripe_bytes(volume) // 1024
    levels = {0: (f"--chunk={chunk_kib}",), 1: (), 10: (f"--chunk={chunk_kib}", "--layout=n2")}
    mirror = ("--assume-clean", "--bitmap=internal") if volume.raid_level else ()
    return (
        *("mdadm", "--create", array_device(volume), "--run", "--metadata=1.2", "--homehost=any"),
        *(f"--name={volume.array_name}", f"--uuid={array_uuid(volume)}", f"--level={volume.raid_level}"),
        *levels[volume.raid_level],
        *mirror,
        f"--raid-devices={len(members)}",
        *(("--force",) if len(members) == 1 else ()),
        *members,
    )


def _heal(volume: Volume, members: Sequence[str]) -> list[Action]:
    """Return what brings members back that the array gave up, from the bitmap or, blank ones, from the start."""
    if not volume.raid_level:
        return []
    device = array_device(volume)
    actions: list[Action] = [
        Write(f"/proc/sys/dev/raid/speed_limit_{end}", str(speed)) for end, speed in HEAL_KIB_PER_S.items()
    ]
    actions.append(Run(("mdadm", device, "--remove", "failed"), may_fail=True))
    for member in members:
        inside = Unless("in-array", f"{device}={member}")
        actions += [
            Run(("mdadm", device, "--re-add", member), inside, may_fail=True),
            Run(("mdadm", device, "--add", member), inside, may_fail=True),
        ]
    return actions


def make_file_system(volume: Volume) -> Action:
    """Return the command that formats the array, its geometry that of the stripe; a formatted one is left alone."""
    stripe_bytes = _stripe_bytes(volume)
    log_bytes = stripe_bytes if stripe_bytes <= LOG_STRIPE_BYTES_MAX else LOG_STRIPE_BYTES_ELSE
    device, uuid = array_device(volume), uuid_text(volume.filesystem_uuid)
    data = data_members(volume)
    geometry = ("-d", f"su={stripe_bytes},sw={data}", "-l", f"su={log_bytes}")
    return Run(
        (
            *("mkfs.xfs", "-q", "-K", "-f", "-m", f"uuid={uuid}"),
            *("-L", plain_name(volume.volume_id)[:LABEL_CHARACTERS]),
            *geometry,
            device,
        ),
        was_formatted(volume),
    )


def no_scheduler(members: Sequence[str]) -> list[Action]:
    """Return what takes away the scheduler of members on other machines, which have their own order of requests.

    The kernel gives `mq-deadline` to a connection of one queue. How far is read ahead is the array's affair alone.
    """
    uuids = [uuid for one in members for uuid in uuids_in(one)]
    return [Write(f"/sys/block/queues({one})/queue/scheduler", "none", may_fail=True) for one in uuids]


def read_ahead(volume: Volume) -> Action:
    """Return the command that reads several whole stripes ahead."""
    stripe = _stripe_bytes(volume) * data_members(volume)
    sectors = min(READ_AHEAD_STRIPES * stripe, READ_AHEAD_BYTES_MAX) // SECTOR_BYTES
    return Run(("blockdev", "--setra", str(sectors), array_device(volume)))


def mount(volume: Volume, folder: Path, options: str) -> list[Action]:
    """Return the commands that mount the volume's array on the folder."""
    argv = ("mount", "-t", "xfs", "-o", options, array_device(volume), str(folder))
    make = Run(("mkdir", "-p", str(folder)), Unless("exists", str(folder)))
    return [make, Run(argv, Unless("mounted", str(folder)))]


def sealed_volume(volume: Volume, members: Sequence[str], folder: Path) -> list[Action]:
    """Return the commands that find a sealed volume and mount it, never to be written."""
    device = array_device(volume)
    there = Unless("assembled", device)
    argv = ("mdadm", "--assemble", device, f"--uuid={array_uuid(volume)}", "--readonly", "--run", *members)
    return [
        Await(Unless("present", ",".join(members)), APPEAR_SECONDS),
        *no_scheduler(members),
        Run(("blockdev", "--setro", *members), there),
        Run(argv, there),
        read_ahead(volume),
        *mount(volume, folder, READ_OPTIONS),
    ]


def _stripe_bytes(volume: Volume) -> int:
    if volume.stripe_unit_bytes < BLOCK_BYTES or volume.stripe_unit_bytes % BLOCK_BYTES:
        raise ConfigError(
            f"volume {volume.volume_id}: a stripe unit of {volume.stripe_unit_bytes} bytes is not a multiple of "
            f"{BLOCK_BYTES}"
        )
    return volume.stripe_unit_bytes
