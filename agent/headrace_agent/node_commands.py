"""All commands that make a machine a storage or a compute node, from its configuration alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace_agent.actions import Action, Run, Unless
from headrace_agent.config import Export, NodeConfig, Volume
from headrace_agent.connect_commands import TRANSPORTS, connect_all, rdma_link, transport_of
from headrace_agent.export_commands import export_all, open_port
from headrace_agent.fields import ConfigError
from headrace_agent.kernel_names import namespace
from headrace_agent.machine import MAPPED, Disk, Machine
from headrace_agent.names import plain_name, uuid_text
from headrace_agent.seal_commands import is_filled, members_of
from headrace_agent.slice_commands import check_blank, make_slice
from headrace_agent.slices import Slice, cut, equal_part
from headrace_agent.stripe_commands import fresh_volume, no_auto_assembly, sealed_volume

LOWER_CHARACTERS_MAX = 3000
"""Longest list of lower folders in one mount: mount(2) takes one page, 4,096 bytes, of options."""


def storage_actions(config: NodeConfig, machine: Machine, volumes: Path) -> list[Action]:
    """Return what makes a storage node: slices, their exports, then the volumes that it fills, on its own and others'.

    It exports before it connects, so that two nodes that fill volumes over each other's disks find each other.
    """
    check_blank(machine.disks, [one.array_uuid for one in config.slices])
    slices = cut(config.slices, machine.disks, config.kept_ppm)
    actions = [*_modules(config), *no_auto_assembly()]
    actions += [action for one in slices.values() for action in make_slice(one)]
    exported = [one for one in config.exports if _is_exported_now(one, slices[one.namespace_uuid], config, machine)]
    if config.exports:
        actions += _served(config, machine)
    actions += export_all(exported, slices, machine)
    unfilled = [one for one in config.volumes if not is_filled(one, slices, machine)]
    wanted = {one.volume_id for one in unfilled}
    actions += connect_all(config, [one for one in config.imports if wanted & set(one.volume_ids)], machine)
    for volume in unfilled:
        actions += fresh_volume(volume, members_of(volume, slices), volumes / plain_name(volume.volume_id))
    return actions


def compute_actions(config: NodeConfig, machine: Machine, volumes: Path, data: Path) -> list[Action]:
    """Return what makes a compute node: own volumes, connections, sealed volumes to read, and one data folder."""
    own = [one for one in config.volumes if not one.slices]
    private = [one for one in config.volumes if one.slices and one.kind == "scratch"]
    sealed = [one for one in config.volumes if one.slices and one.kind == "dataset"]
    actions = [*_modules(config), *no_auto_assembly(), *_own_volumes(own, machine.disks, volumes)]
    if config.imports:
        actions += [*rdma_link(config, machine), *connect_all(config, config.imports, machine)]
    for volume in private:
        actions += fresh_volume(volume, _remote(volume), volumes / plain_name(volume.volume_id))
    for volume in sealed:
        actions += sealed_volume(volume, _remote(volume), volumes / plain_name(volume.volume_id))
    return actions + _data_folder([one for one in config.volumes if one.kind == "dataset"], volumes, data)


def _remote(volume: Volume) -> list[str]:
    return [namespace(uuid_text(one)) for one in volume.slices]


def _is_exported_now(export: Export, one: Slice, config: NodeConfig, machine: Machine) -> bool:
    """Tell whether a slice has this audience now: whoever fills it before it is sealed, its readers after.

    Where nothing can be sealed, the mark of a filled one counts; of a copy it does not, for it is copied first.
    """
    if export.phase == "always":
        return True
    is_copy = any(copy.namespace_uuid == export.namespace_uuid for copy in config.copies)
    complete = machine.sealed if machine.can_seal or is_copy else machine.filled
    return (export.phase == "sealed") == (one.name in complete)


def _served(config: NodeConfig, machine: Machine) -> list[Action]:
    transport = transport_of(config)
    load = Run(("modprobe", "-a", "nvme", "nvmet", f"nvmet-{transport}"))
    return [load, *rdma_link(config, machine), *open_port(transport, machine)]


def _modules(config: NodeConfig) -> list[Action]:
    """Return what loads the modules for stripes."""
    levels = sorted({f"raid{one.raid_level}" for one in config.volumes if one.raid_level} | {"raid0"})
    fabric = ("nvme",) if config.fabric in TRANSPORTS else ()
    return [Run(("modprobe", "-a", "dm-mod", *levels, "xfs", "overlay", *fabric))]


def _own_volumes(own: Sequence[Volume], disks: Sequence[Disk], volumes: Path) -> list[Action]:
    """Return the commands for volumes on this machine's own disks: each disk is cut into one slice per volume."""
    if own and not disks:
        raise ConfigError("this machine has no local NVMe disk for its volumes; choose a type with instance store")
    if own:
        check_blank(disks, [one.array_uuid for one in own])
    actions: list[Action] = []
    for part, volume in enumerate(own):
        name = plain_name(volume.volume_id)
        slices = [equal_part(f"{MAPPED}{name}-{number}", disk, part, len(own)) for number, disk in enumerate(disks)]
        chosen = slices[: volume.members]
        actions += [action for one in chosen for action in make_slice(one)]
        actions += fresh_volume(volume, [one.device for one in chosen], volumes / name)
    return actions


def _data_folder(dataset: Sequence[Volume], volumes: Path, data: Path) -> list[Action]:
    """Return the commands that show the dataset volumes as one folder: one is bound, several are overlaid.

    More than fit into the options of one mount are overlaid in groups, and the groups overlaid: the kernel stacks two
    file systems deep, and no more.
    """
    folders = [str(volumes / one.volume_id) for one in dataset]
    actions: list[Action] = []
    groups = grouped(folders)
    if len(groups) > 1:
        tops = [str(volumes / f"group-{number}") for number in range(len(groups))]
        for group, top in zip(groups, tops, strict=True):
            actions += _show(group, top)
        folders = tops
    return actions + (_show(folders, str(data)) if folders else [])


def grouped(folders: Sequence[str]) -> list[list[str]]:
    """Return the folders in groups whose names fit into the options of one mount each."""
    groups: list[list[str]] = []
    length = LOWER_CHARACTERS_MAX
    for folder in folders:
        length += len(folder) + 1
        if length > LOWER_CHARACTERS_MAX:
            groups.append([])
            length = len(folder)
        groups[-1].append(folder)
    return groups


def _show(folders: Sequence[str], at: str) -> list[Action]:
    overlay = ("mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={':'.join(folders)}", at)
    argv = ("mount", "--bind", folders[0], at) if len(folders) == 1 else overlay
    return [Run(("mkdir", "-p", at), Unless("exists", at)), Run(argv, Unless("mounted", at))]
