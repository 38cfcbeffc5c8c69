"""The commands that take a scratch volume back from a compute node that is gone, and never make or wipe one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.actions import Action, Await, Run, Unless
from headrace_agent.config import LeftResults, NodeConfig, Volume
from headrace_agent.export_commands import STILL_SECONDS, remove_subsystem
from headrace_agent.fields import ConfigError
from headrace_agent.leftovers import Served
from headrace_agent.machine import Machine
from headrace_agent.names import subsystem_nqn
from headrace_agent.release_commands import UNMOUNT_SECONDS, UNMOUNT_TRIES
from headrace_agent.slice_commands import make_slice
from headrace_agent.slices import Slice, cut
from headrace_agent.stripe_commands import (
    WRITE_OPTIONS,
    array_device,
    find_array,
    mount,
    read_ahead,
    was_begun,
    was_formatted,
)


@dataclass(frozen=True)
class Salvage:
    """What salvages one volume, in order; between its parts it is asked whether there is anything to go on with."""

    close_door: list[Action]
    begun: Unless
    """Whether the compute node ever made the array."""
    assemble: list[Action]
    formatted: Unless
    """Whether it ever made the file system."""
    mount: list[Action]
    put_away: list[Action]

    def actions(self) -> list[Action]:
        """Return all of them."""
        return [*self.close_door, *self.assemble, *self.mount, *self.put_away]


def salvage_of(left: LeftResults, config: NodeConfig, machine: Machine, served: Served | None, folder: Path) -> Salvage:
    """Return what salvages a volume that is `served` still or again, or not; raises ConfigError."""
    slices = cut(config.slices, machine.disks, config.kept_ppm)
    unknown = sorted(set(left.volume.slices) - set(slices))
    if unknown:
        raise ConfigError(f"config.json has no slice {', '.join(unknown)} of the volume {left.volume.volume_id}")
    members = [slices[one] for one in left.volume.slices]
    devices = [one.device for one in members]
    return Salvage(
        close_door=[*_map(members), *_close_door(left, devices, served)],
        begun=was_begun(left.volume, devices),
        assemble=[_modules(left.volume), *find_array(left.volume, devices)],
        formatted=was_formatted(left.volume),
        mount=[read_ahead(left.volume), *mount(left.volume, folder, WRITE_OPTIONS)],
        put_away=_put_away(left.volume, folder),
    )


def _map(members: Sequence[Slice]) -> list[Action]:
    """Return what maps the slices where they are not, as after a restart of the machine."""
    return [action for one in members for action in make_slice(one)]


def _close_door(left: LeftResults, devices: Sequence[str], served: Served | None) -> list[Action]:
    """Return what cuts the compute node off, should it live, and waits for its last writes: two would write at once."""
    hosts, numbers = (served.hosts, served.namespace_ids) if served else ((), ())
    still: list[Action] = [Await(Unless("still", one), STILL_SECONDS) for one in devices]
    return [*remove_subsystem(subsystem_nqn(left.subsystem_nqn), hosts, numbers), *still]


def _modules(volume: Volume) -> Action:
    return Run(("modprobe", "-a", "dm-mod", f"raid{volume.raid_level}", "xfs"))


def _put_away(volume: Volume, folder: Path) -> list[Action]:
    """Return what unmounts the volume and stops its array; what clings to it is left to the machine's release."""
    device = array_device(volume)
    unmount = Run(
        ("umount", str(folder)),
        Unless("unmounted", str(folder)),
        tries=UNMOUNT_TRIES,
        may_fail=True,
        seconds=UNMOUNT_SECONDS,
    )
    stop = Run(("mdadm", "--stop", device), Unless("stopped", device), may_fail=True, seconds=UNMOUNT_SECONDS)
    return [unmount, stop]
