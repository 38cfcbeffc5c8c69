"""Which results of compute nodes that are gone lie on which storage node, to be saved from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.domain.fabric_names import scratch_nqn
from headrace.domain.nodeconfig import LeftResults
from headrace.domain.plan import Plan, VolumePlan
from headrace.domain.run import NodeRow
from headrace.domain.wiring import volume_config

Address = Callable[[NodeRow], tuple[str, str]]
"""Gives bucket and prefix of a compute node's results."""


def lent_volumes(plan: Plan) -> tuple[VolumePlan, ...]:
    """Return the scratch volumes that lie on storage nodes."""
    return tuple(one for one in plan.chosen.volumes if one.kind == "scratch" and one.held_by == "storage")


def unsaved(plan: Plan, compute: Sequence[NodeRow]) -> tuple[NodeRow, ...]:
    """Return the last machine in each place whose results storage nodes hold, if its agent never told its job's end.

    One that told it has saved all that it could within the grace.
    """
    lent = {one.hydrator_node_index for one in lent_volumes(plan)}
    last = {one.index: one for one in sorted(compute, key=lambda one: (one.attempt, one.launched_at))}
    return tuple(node for index, node in sorted(last.items()) if index in lent and not _has_told_its_end(node))


def holders_of(plan: Plan, lost: Sequence[NodeRow]) -> frozenset[int]:
    """Return the places of the storage nodes on which these compute nodes left something."""
    places = {node.index for node in lost}
    held = (one for one in lent_volumes(plan) if one.hydrator_node_index in places)
    return frozenset(index for one in held for index in one.member_node_indexes)


def left_on(plan: Plan, storage: NodeRow, lost: Sequence[NodeRow], address: Address) -> tuple[LeftResults, ...]:
    """Return what the lost compute nodes left on that storage node."""
    held = {one.hydrator_node_index: one for one in lent_volumes(plan) if storage.index in one.member_node_indexes}
    return tuple(_left(storage, node, held[node.index], address) for node in lost if node.index in held)


def saved_totals(nodes: Iterable[NodeRow]) -> tuple[int, int]:
    """Return files and bytes that are saved of a run's results by what its machines said.

    Of a compute node whose results a storage node saved, what that one counts holds the node's own count, too.
    """
    known = list(nodes)
    salvages = [one.salvaged for one in known if one.salvaged]
    counted = {rank for one in salvages for rank in one.get("ranks", ())}
    told = [*salvages, *(_told(one) for one in known if one.role == "compute" and one.index not in counted)]
    return sum(one.get("files", 0) for one in told), sum(one.get("bytes", 0) for one in told)


def salvage_remarks(nodes: Iterable[NodeRow]) -> tuple[str, ...]:
    """Return in words what storage nodes saved for compute nodes, and what they could not."""
    remarks = []
    for node in (one for one in nodes if one.salvaged):
        ranks = ", ".join(map(str, node.salvaged.get("ranks", ())))
        if ranks:
            files = node.salvaged["files"]
            count = f"{files:,} file{'' if files == 1 else 's'}"
            remarks.append(f"storage node {node.node_id} saved what compute node {ranks} left: {count} in all")
        if trouble := node.salvaged.get("trouble"):
            remarks.append(f"not saved by storage node {node.node_id}: {trouble}")
    return tuple(remarks)


def _told(node: NodeRow) -> dict[str, Any]:
    return node.job if {"manifest", "files"} <= node.job.keys() else node.results


def _left(storage: NodeRow, node: NodeRow, volume: VolumePlan, address: Address) -> LeftResults:
    bucket, prefix = address(node)
    return LeftResults(
        node_id=node.node_id,
        attempt=node.attempt,
        node_rank=node.index,
        volume=volume_config(storage, volume),
        subsystem_nqn=scratch_nqn(node.run_id, volume.volume_id),
        results_bucket=bucket,
        results_prefix=prefix,
    )


def _has_told_its_end(node: NodeRow) -> bool:
    """Tell whether the last that it said of its job was Job Done or Job Failed, which alone have these.

    One that does not reach its results any more, as after a restart, has said the end of its job and no more.
    """
    return ("manifest" in node.job or "reason" in node.job) and not node.job.get("is_left")
