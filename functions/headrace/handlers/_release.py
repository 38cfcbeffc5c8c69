"""Terminating machines in small groups and noting when each was released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from headrace.domain.errors import NodesStillRunning
from headrace.domain.instants import to_text
from headrace.domain.run import NodeRow
from headrace.handlers._rows import change_node
from headrace.ports import Cloud

GROUP = 50
"""One bad id makes EC2 refuse a whole call, so calls stay small (aws-facts.md section 2)."""
FAILURES_SHOWN = 5


class Asked(NamedTuple):
    """What came of asking: ids that the cloud accepted, and those that could not be asked, with the reason.

    An id in neither is one that the cloud does not know, or not yet.
    """

    accepted: frozenset[str]
    failures: dict[str, str]


def terminate_each(cloud: Cloud, node_ids: Sequence[str]) -> Asked:
    """Ask for the termination of every machine.

    A group that is refused is asked again in halves, so that one bad id never keeps the others running.
    """
    asked = Asked(frozenset(), {})
    remaining = iter(node_ids)
    while group := list(islice(remaining, GROUP)):
        asked = _together(asked, _terminate_group(cloud, group))
    return asked


def _terminate_group(cloud: Cloud, group: Sequence[str]) -> Asked:
    try:
        return Asked(frozenset(cloud.fleets.terminate(group)), {})
    except Exception as error:
        if len(group) == 1:
            return Asked(frozenset(), {group[0]: f"{type(error).__name__}: {error}"})
        middle = len(group) // 2
        return _together(_terminate_group(cloud, group[:middle]), _terminate_group(cloud, group[middle:]))


def _together(one: Asked, other: Asked) -> Asked:
    return Asked(one.accepted | other.accepted, one.failures | other.failures)


def terminate(cloud: Cloud, node_ids: Sequence[str]) -> None:
    """Ask for the termination of every machine; asking again is safe.

    Raises NodesStillRunning, after all were asked, when some could not be.
    """
    _raise_for(terminate_each(cloud, node_ids).failures)


def release(cloud: Cloud, nodes: Sequence[NodeRow]) -> None:
    """Terminate the nodes and note the instant on each row that has none yet, where the cloud accepted it.

    Raises NodesStillRunning, after all were asked, when some could not be; their rows stay as they are.
    """
    asked = terminate_each(cloud, [node.node_id for node in nodes])
    note_released(cloud, [node for node in nodes if node.node_id in asked.accepted])
    _raise_for(asked.failures)


def note_released(cloud: Cloud, nodes: Iterable[NodeRow]) -> None:
    """Note now as the instant of release on each row that has none yet."""
    released_at = to_text(cloud.clock.now())
    for node in nodes:
        change_node(cloud, node, {"state": "released", "released_at": released_at}, {"released_at": None})


def _raise_for(failures: dict[str, str]) -> None:
    if failures:
        shown = "; ".join(f"{node_id}: {why}" for node_id, why in list(failures.items())[:FAILURES_SHOWN])
        raise NodesStillRunning(f"{len(failures)} machines could not be asked to terminate: {shown}")
