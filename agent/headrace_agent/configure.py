"""Makes the machine what its configuration says, or says exactly what that would be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace_agent.actions import Action
from headrace_agent.config import NodeConfig
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Machine, imagined_machine, this_machine
from headrace_agent.names import plain_name
from headrace_agent.node import Node
from headrace_agent.node_commands import compute_actions, seal_actions, storage_actions
from headrace_agent.runner import execute, record


@dataclass(frozen=True)
class Configured:
    """What was done: how many actions the configuration asks for, and those that were only recorded."""

    actions: int
    not_executed: tuple[str, ...]
    in_words: str


def configure(node: Node, config: NodeConfig, say: Callable[[str], object]) -> Configured:
    """Configure this node, saying each action; raises ConfigError or ActionFailed.

    A process node formats nothing and exports nothing: it makes plain folders, and records what it did not do.
    """
    _check_owner(node, config)
    actions = actions_for(node, config)
    if not node.process_node:
        _check_described(config)
        done = execute(actions, say)
        words = f"configured as {config.role} node: {done} of {len(actions)} actions were needed"
        return Configured(len(actions), (), words)
    own = [one for one in config.volumes if one.hydrated_here or one.kind == "scratch"]
    for volume in own:
        (node.volumes / plain_name(volume.volume_id)).mkdir(parents=True, exist_ok=True)
    record(actions, node.folder, say)
    words = f"configured as a process node: {len(own)} folders made, {len(actions)} actions not executed here"
    return Configured(len(actions), tuple(map(str, actions)), words)


def actions_for(node: Node, config: NodeConfig) -> list[Action]:
    """Return all actions of this node's role, in order; raises ConfigError."""
    machine = machine_for(node, config)
    if config.role == "storage":
        return storage_actions(config, machine, node.volumes)
    return compute_actions(config, machine, node.volumes, node.data)


def machine_for(node: Node, config: NodeConfig) -> Machine:
    """Return this machine, or for a process node one that has the disks which the configuration takes for granted."""
    if not node.process_node:
        return this_machine()
    return imagined_machine(len(config.exports) or max((one.members for one in config.volumes), default=0))


def seal(node: Node, config: NodeConfig, say: Callable[[str], object]) -> None:
    """Seal what a storage node has filled; on a process node this is recorded only. Raises ActionFailed."""
    if config.role != "storage":
        return
    actions = seal_actions(config, machine_for(node, config), node.volumes)
    if node.process_node:
        record(actions, node.folder, say)
    else:
        execute(actions, say)


def _check_described(config: NodeConfig) -> None:
    described = {one.volume_id for one in config.volumes}
    unknown = sorted({volume_id for one in config.imports for volume_id in one.volume_ids} - described)
    if unknown:
        raise ConfigError(f"config.json imports the volumes {', '.join(unknown)} and does not describe them")


def _check_owner(node: Node, config: NodeConfig) -> None:
    if (config.run_id, config.node_id) != (node.run_id, node.node_id):
        raise ConfigError(
            f"config.json is for {config.run_id}/{config.node_id} and this node is {node.run_id}/{node.node_id}"
        )
