"""The commands that end the filling of a storage node: its volumes closed, its slices sealed, its doors opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace_agent.actions import Action, Await, Mark, Run, Unless
from headrace_agent.config import Copy, NodeConfig, Volume
from headrace_agent.connect_commands import connect_copy, disconnect, transport_of
from headrace_agent.export_commands import export_all, open_port, withdraw
from headrace_agent.kernel_names import namespace
from headrace_agent.machine import FILLED, Machine
from headrace_agent.names import plain_name, uuid_text
from headrace_agent.slice_commands import seal_slice
from headrace_agent.slices import Slice, cut
from headrace_agent.stripe_commands import array_device

FILL_SECONDS = 6 * 3600
"""How long the slowest other node of the run may still fill its volumes, or seal what is to be copied."""

COPY_TRIES = 2 * FILL_SECONDS
COPY_SECONDS = 12 * 3600


def seal_actions(config: NodeConfig, machine: Machine, volumes: Path) -> list[Action]:
    """Return what seals this node's slices, in the only order that is safe.

    A volume is closed, its members are marked as filled, and each node seals those that it holds when it finds the
    mark, so that none is sealed under a writer. Then readers are admitted, and only then copies can be taken.
    """
    slices = cut(config.slices, machine.disks, config.kept_ppm)
    copied = {one.namespace_uuid for one in config.copies}
    sealed = [one for one in config.exports if one.phase == "sealed"]
    actions = [action for one in config.volumes if one.hydrated_here for action in close(one, slices, machine, volumes)]
    actions += [disconnect(one.subsystem_nqn) for one in config.imports]
    actions += _seal_own(config, slices, copied, machine)
    if sealed:
        actions += open_port(transport_of(config), machine)
    actions += export_all([one for one in sealed if one.namespace_uuid not in copied], slices, machine)
    for one in config.copies:
        actions += _take_copy(config, one, slices[one.namespace_uuid], machine)
    return actions + export_all([one for one in sealed if one.namespace_uuid in copied], slices, machine)


def close(volume: Volume, slices: Mapping[str, Slice], machine: Machine, volumes: Path) -> list[Action]:
    """Return what unmounts a volume, stops its array, and says on each member that it is filled.

    Whoever finds the mark on a member withdraws it from the machine that filled it, maybe while that one is cut off in
    the middle of this. So own members are marked first: those of other machines that are gone, when this is repeated
    and the own ones have the mark, were told before.
    """
    folder, device = str(volumes / plain_name(volume.volume_id)), array_device(volume)
    text, own = mark_of(volume.array_uuid), {one.device for one in slices.values()}
    members, was_closed = members_of(volume, slices), is_filled(volume, slices, machine)
    marks = [Mark(one, text) for one in members if one in own]
    marks += [Mark(one, text, may_be_gone=was_closed) for one in members if one not in own]
    return [
        Run(("umount", folder), Unless("unmounted", folder)),
        Run(("mdadm", "--stop", device), Unless("stopped", device)),
        *marks,
    ]


def members_of(volume: Volume, slices: Mapping[str, Slice]) -> list[str]:
    """Return the devices of a volume in stripe order: slices of this machine, and namespaces of others."""
    return [slices[one].device if one in slices else namespace(uuid_text(one)) for one in volume.slices]


def is_filled(volume: Volume, slices: Mapping[str, Slice], machine: Machine) -> bool:
    """Tell whether a volume that this machine fills was closed before."""
    own = [slices[one].name for one in volume.slices if one in slices]
    return bool(own) and machine.filled.issuperset(own)


def mark_of(array_uuid: str) -> str:
    """Return the text on each member of a volume that is complete."""
    return f"{FILLED}{uuid_text(array_uuid)}"


def _seal_own(config: NodeConfig, slices: Mapping[str, Slice], copied: set[str], machine: Machine) -> list[Action]:
    """Return what seals the slices that were filled in place, once they are, and sends whoever filled them away."""
    actions: list[Action] = [Run(("modprobe", "dm-flakey"))] if machine.can_seal else []
    own = [one for one in config.slices if one.namespace_uuid not in copied]
    to_seal = {one.namespace_uuid for one in config.exports if one.phase == "sealed"}
    own = [one for one in own if one.namespace_uuid in to_seal]
    for one in own:
        device = slices[one.namespace_uuid].device
        actions.append(Await(Unless("marked", f"{device}={mark_of(one.array_uuid)}"), FILL_SECONDS))
    actions += withdraw([one for one in config.exports if one.phase == "filling"])
    if machine.can_seal:
        actions += [action for one in own for action in seal_slice(slices[one.namespace_uuid])]
    return actions


def _take_copy(config: NodeConfig, one: Copy, to: Slice, machine: Machine) -> list[Action]:
    """Return what copies a sealed slice byte by byte, compared as it is written, and seals the copy.

    The kernel never compares the paths of a namespace, so a copy that differs would be served without a word.
    """
    source, sealed = namespace(uuid_text(one.namespace_uuid)), Unless("sealed", to.name)
    if to.name in machine.sealed:
        return []
    return [
        *connect_copy(config, one, COPY_TRIES, machine),
        Await(Unless("present", source), 60),
        Run(("headrace-agent", "copy-device", source, to.device), sealed, seconds=COPY_SECONDS),
        disconnect(one.subsystem_nqn),
        *(seal_slice(to) if machine.can_seal else ()),
    ]
