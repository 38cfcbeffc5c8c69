"""Where a job works and writes its results: on the node's scratch volume, if it has one."""

from __future__ import annotations

from pathlib import Path

from headrace_agent.config import NodeConfig, Volume
from headrace_agent.mounts import is_mounted
from headrace_agent.names import plain_name
from headrace_agent.node import Node


def scratch_of(config: NodeConfig) -> Volume | None:
    """Return the node's scratch volume."""
    return next((one for one in config.volumes if one.kind == "scratch"), None)


def base_folder(node: Node, config: NodeConfig) -> Path:
    """Return the folder that holds all that a job writes.

    It is the scratch volume's. On a process node, where nothing is mounted, that of a volume on another node's slices
    is a folder of that node, which finds it there when this one is gone; else it is the node's own folder.
    """
    volume = scratch_of(config)
    if volume is None:
        return node.folder
    if not node.process_node:
        return node.volumes / plain_name(volume.volume_id)
    return (shared_folder(config, volume) if volume.slices else None) or node.folder


def journal_folder(node: Node, config: NodeConfig) -> Path:
    """Return the folder of the results' journal: where the results are, if another node may have to go on with it."""
    volume, base = scratch_of(config), base_folder(node, config)
    is_on_others = volume is not None and bool(volume.slices) and base != node.folder
    return left_journal(base) if is_on_others else node.state


def why_not_there(node: Node, config: NodeConfig) -> str | None:
    """Return why the job cannot work on a volume on other nodes' slices, or None: what it wrote there must not be lost.

    After a restart of the machine nothing is mounted, and results looked for below that folder would seem to be gone.
    """
    volume, base = scratch_of(config), base_folder(node, config)
    if node.process_node or volume is None or not volume.slices or is_mounted(base):
        return None
    return f"the scratch volume {volume.volume_id} is not mounted on {base}; run `headrace-agent configure` first"


def left_journal(base: Path) -> Path:
    """Return the folder of the results' journal on a scratch volume; the job's user can neither read nor write it."""
    return base / "state"


def shared_folder(config: NodeConfig, volume: Volume) -> Path | None:
    """Return the folder that stands for a volume in that of the node that holds it, where nodes share files."""
    named = (one.shared_folder for one in config.imports if volume.volume_id in one.volume_ids)
    folder = next((one for one in named if one), None)
    return Path(folder) / "volumes" / plain_name(volume.volume_id) if folder else None
