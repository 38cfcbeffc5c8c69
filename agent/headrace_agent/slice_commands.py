"""The commands that cut this machine's disks into slices, each behind device-mapper from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace_agent.actions import Action, Run, Unless
from headrace_agent.config import Export
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Disk
from headrace_agent.names import plain_name

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


def cut(exports: Sequence[Export], disks: Sequence[Disk]) -> dict[tuple[str, int], Slice]:
    """Return the slice for each (volume id, slice index), dealt over the disks in turn.

    Raises ConfigError when there is no disk.
    """
    if exports and not disks:
        raise ConfigError("this machine has no local NVMe disk to serve; choose an instance type with instance store")
    parts = -(-len(exports) // len(disks)) if disks else 0
    return {
        (export.volume_id, export.slice_index): Slice(
            f"headrace-{plain_name(export.volume_id)}-{export.slice_index}",
            disks[number % len(disks)],
            number // len(disks),
            parts,
        )
        for number, export in enumerate(exports)
    }


def make_slice(one: Slice) -> Action:
    """Return the command that maps the slice for reading and writing."""
    table = f"0 {one.length} linear {one.disk.path} {one.start}"
    return Run(("dmsetup", "create", one.name, "--table", table), Unless("exists", one.device))


def seal_slice(one: Slice) -> list[Action]:
    """Return the commands that swap in a table which refuses writes, while the slice stays exported.

    dm-flakey with an up interval of 0 is always in its error_writes state, and no remote host can undo it.
    """
    table = f"0 {one.length} flakey {one.disk.path} {one.start} 0 60 1 error_writes"
    return [
        Run(("dmsetup", "load", one.name, "--table", table)),
        Run(("dmsetup", "suspend", one.name)),
        Run(("dmsetup", "resume", one.name)),
    ]
