"""The commands that cut this machine's disks into slices, each behind device-mapper from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace_agent.actions import Action, Run, Unless, Write
from headrace_agent.config import SliceRequest
from headrace_agent.fields import ConfigError
from headrace_agent.machine import MAPPED, Disk
from headrace_agent.names import plain_name, uuid_text

ALIGN_SECTORS = 2048
"""1 MiB, so that every slice begins on a boundary that any SSD likes."""


@dataclass(frozen=True)
class Slice:
    """One slice: part `part` of `parts` equal parts of a disk, under a device-mapper name."""

    name: str
    disk: Disk
    part: int
    parts: int

    @property
    def device(self) -> str:
        """Path of the mapped device."""
        return f"/dev/mapper/{self.name}"

    @property
    def start(self) -> str:
        """First sector, or where it would be found."""
        sectors = self._sectors()
        return "0" if self.part == 0 else f"{self.part}*{self.length}" if sectors is None else str(self.part * sectors)

    @property
    def length(self) -> str:
        """Sectors, or where they would be found."""
        sectors = self._sectors()
        return f"SECTORS({self.disk.path})/{self.parts}" if sectors is None else str(sectors)

    def _sectors(self) -> int | None:
        if self.disk.sectors is None:
            return None
        return self.disk.sectors // self.parts // ALIGN_SECTORS * ALIGN_SECTORS


def cut(wanted: Sequence[SliceRequest], disks: Sequence[Disk]) -> dict[str, Slice]:
    """Return the slice for each namespace UUID, dealt over the disks in turn.

    Raises ConfigError when there is no disk.
    """
    if wanted and not disks:
        raise ConfigError("this machine has no local NVMe disk to serve; choose an instance type with instance store")
    parts = -(-len(wanted) // len(disks)) if disks else 0
    return {
        uuid_text(one.namespace_uuid): Slice(
            f"{MAPPED}{plain_name(one.name)}", disks[number % len(disks)], number // len(disks), parts
        )
        for number, one in enumerate(wanted)
    }


def check_blank(disks: Sequence[Disk], array_uuids: Sequence[str]) -> None:
    """Raise ConfigError when a disk holds what is not this run's: nothing is ever written over it."""
    for disk in disks:
        if disk.holds and disk.holds not in {f"linux_raid_member {one}" for one in array_uuids}:
            raise ConfigError(
                f"the disk {disk.path} holds {disk.holds}, which this run did not make. Empty it "
                f"(`wipefs --all {disk.path}`) if it may be used, or choose an instance type with blank disks"
            )


def make_slice(one: Slice) -> list[Action]:
    """Return what maps the slice for reading and writing, its disk without a scheduler, which NVMe has no use for.

    Where no udev runs, only mknodes makes the path.
    """
    table = f"0 {one.length} linear {one.disk.path} {one.start}"
    scheduler = f"/sys/block/{one.disk.path.rsplit('/', 1)[1]}/queue/scheduler"
    return [
        Write(scheduler, "none", Unless("mapped", one.name), may_fail=True),
        Run(("dmsetup", "create", one.name, "--table", table), Unless("mapped", one.name)),
        Run(("dmsetup", "mknodes", one.name), Unless("exists", one.device)),
    ]


def seal_slice(one: Slice) -> list[Action]:
    """Return the commands that swap in a table which refuses writes, while the slice stays exported.

    dm-flakey with an up interval of 0 is always in its error_writes state, and no remote host can undo it. The kernel
    suspends by itself to swap tables (Linux drivers/md/dm-ioctl.c, do_resume); suspended by a command of its own, a
    slice would keep its readers waiting for good if this were cut off before the next one.
    """
    table = f"0 {one.length} flakey {one.disk.path} {one.start} 0 60 1 error_writes"
    sealed = Unless("sealed", one.name)
    return [
        Run(("dmsetup", "load", one.name, "--table", table), sealed),
        Run(("dmsetup", "resume", one.name), sealed),
    ]
