"""All commands that make a machine a storage or a compute node, from its configuration alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace_agent.actions import Action, Run, Unless, Write
from headrace_agent.config import Import, NodeConfig, Volume
from headrace_agent.export_commands import export_all
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Disk, Machine
from headrace_agent.names import address, host_uuid, plain_name, subsystem_nqn
from headrace_agent.slice_commands import Slice, cut, make_slice, seal_slice
from headrace_agent.stripe_commands import (
    READ_OPTIONS,
    WRITE_OPTIONS,
    array_device,
    find_array_read_only,
    make_array,
    make_file_system,
    mount,
)

TRANSPORTS = {"tcp": "tcp", "roce": "rdma"}
CTRL_LOSS_SECONDS = 600
RECONNECT_SECONDS = 2
KEEP_ALIVE_SECONDS = 5
SOFT_ROCE = "rxe0"
CONNECT_TRIES = 5


def storage_actions(config: NodeConfig, machine: Machine, volumes: Path) -> list[Action]:
    """Return what makes a storage node: slices, stripes mounted for filling, and their exports."""
    slices = cut(config.exports, machine.disks)
    actions = _modules(config, machine, "nvmet", f"nvmet-{TRANSPORTS.get(config.fabric)}") + [
        make_slice(one) for one in slices.values()
    ]
    if config.imports:
        actions += _connect_all(config)
    for volume in config.volumes:
        actions += _fresh_volume(volume, _members(volume, slices, machine), volumes)
    return actions + export_all(config.exports, slices, _transport(config), machine) if config.exports else actions


def compute_actions(config: NodeConfig, machine: Machine, volumes: Path, data: Path) -> list[Action]:
    """Return what makes a compute node: own volumes, connections, imported volumes read-only, and one data folder."""
    own = [one for one in config.volumes if one.hydrated_here or one.kind == "scratch"]
    imported = [one for one in config.volumes if one not in own]
    actions = _modules(config, machine)
    actions += _own_volumes(own, machine.disks, volumes)
    if config.imports:
        actions += _connect_all(config)
    for volume in imported:
        actions += [find_array_read_only(volume), *mount(volume, volumes / plain_name(volume.volume_id), READ_OPTIONS)]
    return actions + _data_folder([one for one in config.volumes if one.kind == "dataset"], volumes, data)


def seal_actions(config: NodeConfig, machine: Machine, volumes: Path) -> list[Action]:
    """Return what ends the filling of a storage node: clean unmount, array stopped, slices that refuse writes."""
    slices = cut(config.exports, machine.disks)
    actions: list[Action] = [Run(("modprobe", "dm-flakey"))]
    for volume in config.volumes:
        actions += [
            Run(("umount", str(volumes / plain_name(volume.volume_id)))),
            Run(("mdadm", "--stop", array_device(volume))),
        ]
    return actions + [action for one in slices.values() for action in seal_slice(one)]


def connect(one: Import, transport: str) -> Action:
    """Return the command that connects to one storage node; long options, since short ones changed their meaning."""
    nqn = subsystem_nqn(one.subsystem_nqn)
    argv = (
        *("nvme", "connect", f"--transport={transport}", f"--traddr={address(one.address)}"),
        *(f"--trsvcid={one.service_port}", f"--nqn={nqn}", f"--nr-io-queues={one.queues}"),
        *(f"--ctrl-loss-tmo={CTRL_LOSS_SECONDS}", f"--reconnect-delay={RECONNECT_SECONDS}"),
        f"--keep-alive-tmo={KEEP_ALIVE_SECONDS}",
    )
    return Run(argv, Unless("connected", nqn), tries=CONNECT_TRIES)


def _connect_all(config: NodeConfig) -> list[Action]:
    """Return what makes this host known by its name, and connects it to every node that it imports from."""
    uuid, transport = host_uuid(config.host_nqn), _transport(config)
    named = [Write("/etc/nvme/hostnqn", f"{config.host_nqn}\n"), Write("/etc/nvme/hostid", f"{uuid}\n")]
    load = Run(("modprobe", "-a", "nvme-fabrics", f"nvme-{transport}"))
    return [load, *named, *(connect(one, transport) for one in config.imports)]


def _members(volume: Volume, slices: Mapping[tuple[str, int], Slice], machine: Machine) -> list[str]:
    """Return the devices of a volume's stripe; other nodes' are only known by name where commands are only shown."""
    local = [one.device for (volume_id, _), one in slices.items() if volume_id == volume.volume_id]
    remote = range(len(local), volume.members) if machine.is_imagined else ()
    return local + [f"REMOTE({volume.volume_id}/{number})" for number in remote]


def _transport(config: NodeConfig) -> str:
    if config.fabric not in TRANSPORTS:
        raise ConfigError(f"config.json: exports and imports need the fabric tcp or roce, found {config.fabric!r}")
    return TRANSPORTS[config.fabric]


def _modules(config: NodeConfig, machine: Machine, *served: str) -> list[Action]:
    """Return what loads the modules for stripes and, where there is a fabric, those that are `served` over it."""
    base = ("modprobe", "-a", "dm-mod", "raid0", "xfs", "overlay")
    if config.fabric not in TRANSPORTS:
        return [Run(base)]
    soft_roce = _soft_roce(machine) if config.fabric == "roce" else []
    return [Run((*base, "nvme", *served)), *soft_roce]


def _soft_roce(machine: Machine) -> list[Action]:
    link = ("rdma", "link", "add", SOFT_ROCE, "type", "rxe", "netdev", machine.network_device)
    return [Run(("modprobe", "rdma_rxe")), Run(link, Unless("exists", f"/sys/class/infiniband/{SOFT_ROCE}"))]


def _own_volumes(own: Sequence[Volume], disks: Sequence[Disk], volumes: Path) -> list[Action]:
    """Return the commands for volumes on this machine's own disks: each disk is cut into one slice per volume."""
    if own and not disks:
        raise ConfigError("this machine has no local NVMe disk for its volumes; choose a type with instance store")
    actions: list[Action] = []
    for part, volume in enumerate(own):
        name = plain_name(volume.volume_id)
        slices = [Slice(f"headrace-{name}-{number}", disk, part, len(own)) for number, disk in enumerate(disks)]
        chosen = slices[: volume.members]
        actions += [make_slice(one) for one in chosen]
        actions += _fresh_volume(volume, [one.device for one in chosen], volumes)
    return actions


def _fresh_volume(volume: Volume, members: Sequence[str], volumes: Path) -> list[Action]:
    folder = volumes / plain_name(volume.volume_id)
    return [*make_array(volume, members), make_file_system(volume), *mount(volume, folder, WRITE_OPTIONS)]


def _data_folder(dataset: Sequence[Volume], volumes: Path, data: Path) -> list[Action]:
    """Return the commands that show the dataset volumes as one folder: one is bound, several are overlaid."""
    if not dataset:
        return []
    folders = [str(volumes / one.volume_id) for one in dataset]
    overlay = ("mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={':'.join(folders)}", str(data))
    argv = ("mount", "--bind", folders[0], str(data)) if len(folders) == 1 else overlay
    return [Run(("mkdir", "-p", str(data))), Run(argv, Unless("mounted", str(data)))]
