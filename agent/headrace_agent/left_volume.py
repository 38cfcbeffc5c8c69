"""Opens a scratch volume that a compute node left, for as long as it is salvaged."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace_agent.action_failed import ActionFailed
from headrace_agent.actions import Action, one_by_one
from headrace_agent.config import LeftResults
from headrace_agent.configure import machine_for
from headrace_agent.leftovers import Served, served_as
from headrace_agent.names import plain_name
from headrace_agent.runner import Doing, execute, record
from headrace_agent.salvage_commands import Salvage, salvage_of
from headrace_agent.states import holds
from headrace_agent.text import SHORT_JSON_BYTES, last_part
from headrace_agent.work import Work

LOG = logging.getLogger(__name__)
SAID_CHARACTERS = 300


@contextmanager
def left_folder(work: Work, left: LeftResults) -> Iterator[Path | None]:
    """Yield the folder that the volume is mounted on, or None when the compute node never made it.

    Raises ConfigError or ActionFailed when it is there and does not come up, NotThere or OSError when that cannot be
    told. Afterwards it is unmounted, whatever came up. A process node has it as a folder.
    """
    node, config = work.node, work.task.config
    folder = node.volumes / plain_name(left.volume.volume_id)
    salvage = salvage_of(left, config, machine_for(node, config), _served(work, left), folder)
    if node.process_node:
        record(one_by_one(salvage.actions()), node.folder, LOG.info)
        yield folder if folder.is_dir() else None
        return
    try:
        yield folder if _comes_up(salvage, Doing(work.stop.is_set)) else None
    finally:
        execute(salvage.put_away, LOG.info)


def _comes_up(salvage: Salvage, doing: Doing) -> bool:
    """Mount the volume; return False when there is none."""
    _do(salvage.close_door, "the compute node cannot be cut off from it", doing)
    if not holds(salvage.begun):
        return False
    _do(salvage.assemble, "its array does not come up", doing)
    if not holds(salvage.formatted):
        return False
    _do(salvage.mount, "its file system cannot be mounted", doing)
    return True


def _do(actions: Sequence[Action], otherwise: str, doing: Doing) -> None:
    """Do the actions; raises ActionFailed that says what is wrong first, and the end of what a command said."""
    try:
        execute(actions, LOG.info, doing)
    except ActionFailed as error:
        LOG.warning("%s: %s", otherwise, error)
        said = last_part(" ".join(str(error).split()), SAID_CHARACTERS, SHORT_JSON_BYTES)
        raise ActionFailed(f"{otherwise}: {said}") from error


def _served(work: Work, left: LeftResults) -> Served | None:
    """Return what is served of the volume now; of a process node it is taken for granted."""
    if not work.node.process_node:
        return served_as(left.subsystem_nqn)
    numbers = range(1, len(left.volume.slices) + 1)
    return Served(left.subsystem_nqn, (), tuple(numbers))
