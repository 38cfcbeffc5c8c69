"""Makes the machine what its configuration says, or says exactly what that would be."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from headrace_agent.actions import Action, one_by_one
from headrace_agent.config import NodeConfig
from headrace_agent.connect_commands import TRANSPORTS
from headrace_agent.export_commands import demands_keys
from headrace_agent.fabric_keys import NO_KEYS, FabricKeys, read_keys
from headrace_agent.fields import ConfigError
from headrace_agent.health import lost_connections
from headrace_agent.kernel_names import SYSTEM
from headrace_agent.leftovers import leftovers
from headrace_agent.machine import Machine, can_show_keys, imagined_machine, rdma_device, this_machine
from headrace_agent.names import plain_name
from headrace_agent.node import Node
from headrace_agent.node_commands import compute_actions, storage_actions
from headrace_agent.preflight import missing
from headrace_agent.release_commands import release_actions
from headrace_agent.runner import Doing, execute, record
from headrace_agent.scratch import shared_folder
from headrace_agent.seal_commands import seal_actions


@dataclass(frozen=True)
class Configured:
    """What was done: how many actions the configuration asks for, and those that were only recorded."""

    actions: int
    not_executed: tuple[str, ...]
    in_words: str
    fabric: str | None = None
    """How the node reaches others or is reached, in words."""
    demands_keys: bool | None = None
    """Whether hosts must prove who they are; None where nothing is exported."""


def configure(node: Node, config: NodeConfig, say: Callable[[str], object]) -> Configured:
    """Configure this node, saying each action; raises ConfigError or ActionFailed.

    A process node formats nothing and exports nothing: it makes plain folders, and records what it did not do.
    """
    check_owner(node, config)
    if not node.process_node:
        return _configure_machine(node, config, say)
    actions = actions_for(node, config)
    folders = _own_folders(node, config)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    actions = one_by_one(actions)
    record(actions, node.folder, say)
    words = f"configured as a process node: {len(folders)} folders made, {len(actions)} actions not executed here"
    return Configured(len(actions), tuple(map(str, actions)), words)


def _own_folders(node: Node, config: NodeConfig) -> list[Path]:
    """Return what stands for the volumes that a process node makes; a private one is where its slices would be."""
    own = [one for one in config.volumes if one.hydrated_here or one.kind == "scratch"]
    shared = [shared_folder(config, one) if one.kind == "scratch" and one.slices else None for one in own]
    return [there or node.volumes / plain_name(one.volume_id) for one, there in zip(own, shared, strict=True)]


def _configure_machine(node: Node, config: NodeConfig, say: Callable[[str], object]) -> Configured:
    _check_described(config)
    check_abilities(node, config)
    keys = read_keys(node, config)
    _check_keys(node, keys)
    actions = actions_for(node, config, keys)
    done = execute(actions, say, Doing(keys=keys.by_name))
    words = f"configured as {config.role} node: {done} of {len(actions)} actions were needed"
    demands = demands_keys() if config.exports else None
    return Configured(len(actions), (), words, _fabric_now(config), demands)


def actions_for(node: Node, config: NodeConfig, keys: FabricKeys = NO_KEYS) -> list[Action]:
    """Return all actions of this node's role, in order; raises ConfigError."""
    machine = machine_for(node, config, keys)
    if config.role == "storage":
        return storage_actions(config, machine, node.volumes)
    return compute_actions(config, machine, node.volumes, node.data)


def fabric_in_words(config: NodeConfig, device: str | None) -> str | None:
    """Return what the run's fabric is on this machine, which is never another than the run's."""
    if not (config.exports or config.imports) or config.fabric not in TRANSPORTS:
        return None
    if config.fabric == "tcp":
        return f"NVMe/TCP at {config.address}"
    return f"NVMe/RoCE at {config.address}, {f'by the device {device}' if device else 'in software'}"


def _fabric_now(config: NodeConfig) -> str | None:
    """Return the fabric in words, with the paths that are missing: what has another one is set up without them."""
    words = fabric_in_words(config, rdma_device(SYSTEM))
    if words and config.exports:
        words += f", hosts prove {'who they are by keys' if demands_keys() else 'nothing: this kernel takes no keys'}"
    lost = lost_connections(config) if config.role == "compute" else []
    return f"{words}; of {len(config.imports)} paths: {'; '.join(lost)}" if words and lost else words


def machine_for(node: Node, config: NodeConfig, keys: FabricKeys = NO_KEYS) -> Machine:
    """Return this machine, or for a process node one that has the disks which the configuration takes for granted."""
    if not node.process_node:
        shown = keys.shown if keys.shown and can_show_keys() else frozenset()
        return replace(this_machine(config.address), keyed=shown)
    return imagined_machine(len(config.slices) or max((one.members for one in config.volumes), default=0))


def seal(
    node: Node, config: NodeConfig, say: Callable[[str], object], is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Seal what a storage node has filled; on a process node this is recorded only. Raises ActionFailed."""
    if config.role != "storage":
        return
    keys = NO_KEYS if node.process_node else read_keys(node, config)
    machine = machine_for(node, config, keys)
    actions = seal_actions(config, machine, node.volumes)
    if node.process_node:
        record(one_by_one(actions), node.folder, say)
        return
    if not machine.can_seal:
        say("this kernel has no module dm-flakey: only the readers' own settings keep the volumes from being written")
    execute(actions, say, Doing(is_stopped, keys.by_name))


def release(node: Node, say: Callable[[str], object]) -> list[str]:
    """Undo everything on this machine. Return what is left all the same, in words; nothing on a process node."""
    if node.process_node:
        return []
    folders = (node.volumes, node.data)
    execute(release_actions(leftovers(folders)), say)
    return leftovers(folders).in_words()


def check_abilities(node: Node, config: NodeConfig) -> None:
    """Raise ConfigError, naming the node and each missing module and program, when it cannot be what it is told."""
    lacks = missing(config, has_rdma_device=rdma_device(SYSTEM) is not None)
    if lacks:
        raise ConfigError(
            f"node {node.node_id} cannot be a {config.role} node of the fabric {config.fabric!r}: {'; '.join(lacks)}. "
            "Use an image that has them, or ask for another fabric in the job"
        )


def _check_keys(node: Node, keys: FabricKeys) -> None:
    if keys.demanded and not can_show_keys():
        raise ConfigError(
            f"node {node.node_id} cannot prove who it is: the kernel {os.uname().release} was built without "
            f"NVME_HOST_AUTH, and the storage nodes at {', '.join(sorted(keys.demanded))} admit nobody without a key. "
            "Use an image with such a kernel for this role, or one without NVME_TARGET_AUTH for storage"
        )


def _check_described(config: NodeConfig) -> None:
    described = {one.volume_id for one in config.volumes}
    unknown = sorted({volume_id for one in config.imports for volume_id in one.volume_ids} - described)
    if unknown:
        raise ConfigError(f"config.json imports the volumes {', '.join(unknown)} and does not describe them")


def check_owner(node: Node, config: NodeConfig) -> None:
    """Raise ConfigError when the configuration is another node's."""
    if (config.run_id, config.node_id) != (node.run_id, node.node_id):
        raise ConfigError(
            f"config.json is for {config.run_id}/{config.node_id} and this node is {node.run_id}/{node.node_id}"
        )
