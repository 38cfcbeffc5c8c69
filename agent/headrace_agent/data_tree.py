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
    """Return the folders of all dataset volumes of a process node, others' first, each once.

    A volume that is striped over several nodes has its files on the one that filled it. Raises DataUnusable when a
    volume is nowhere.
    """
    shared: dict[str, list[Path]] = {}
    for one in config.imports:
        for volume_id in one.volume_ids if one.shared_folder else ():
            shared.setdefault(volume_id, []).append(Path(one.shared_folder or "") / "volumes" / volume_id)
    own = [node.volumes / one.volume_id for one in config.volumes if one.kind == "dataset" and one.hydrated_here]
    places = [*shared.values(), *([folder] for folder in own)]
    return tuple(dict.fromkeys(folder for candidates in places for folder in _existing(candidates)))


def _existing(candidates: list[Path]) -> list[Path]:
    found = [folder for folder in candidates if folder.is_dir()]
    if not found:
        nowhere = ", ".join(map(str, candidates))
        raise DataUnusable(f"the volume {nowhere} is not there; the node that holds it may be gone")
    return found


def merge(folders: Iterable[Path], target: Path) -> int:
    """Fill the empty folder `target` with links to all files of the folders. Return how many.

    Raises DataUnusable when two hold the same path.
    """
    target.mkdir(parents=True, exist_ok=True)
    return sum(_link_all(folder, target) for folder in folders)


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
