"""Makes one data folder of several volumes where nothing can be mounted: real folders, links to the files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from headrace_agent.config import NodeConfig
from headrace_agent.node import Node


class DataUnusable(Exception):
    """The volumes cannot be shown as one folder; the text says why."""


def dataset_folders(node: Node, config: NodeConfig) -> tuple[Path, ...]:
    """Return the folders of all dataset volumes of a process node, others' first."""
    shared = [
        Path(one.shared_folder) / "volumes" / volume_id
        for one in config.imports
        if one.shared_folder
        for volume_id in one.volume_ids
    ]
    own = [node.volumes / one.volume_id for one in config.volumes if one.kind == "dataset" and one.hydrated_here]
    return tuple(dict.fromkeys([*shared, *own]))


def merge(folders: Iterable[Path], target: Path) -> int:
    """Fill the empty folder `target` with links to all files of the folders. Return how many.

    Raises DataUnusable when a folder is absent or two hold the same path.
    """
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for folder in folders:
        if not folder.is_dir():
            raise DataUnusable(f"the volume {folder} is not there; the node that holds it may be gone")
        count += _link_all(folder, target)
    return count


def _link_all(folder: Path, target: Path) -> int:
    count = 0
    for here, subfolders, names in os.walk(folder):
        if here == str(folder):
            subfolders[:] = [one for one in subfolders if not one.startswith(".headrace-")]
        there = target / Path(here).relative_to(folder)
        there.mkdir(exist_ok=True)
        for name in names:
            _link(Path(here) / name, there / name)
        count += len(names)
    return count


def _link(source: Path, link: Path) -> None:
    try:
        link.symlink_to(source)
    except FileExistsError as error:
        raise DataUnusable(f"the file {link.name} is in two volumes: {source} and {link.resolve()}") from error
