"""The commands that map the slices of this machine's disks, each behind device-mapper from the start."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_agent.actions import Action, Run, Unless, Write
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Disk
from headrace_agent.slices import Slice


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
