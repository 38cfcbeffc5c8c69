"""What a storage node holds and serves: slices of its disks, to whom, until when, and copies of others' slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.domain.fabric_names import (
    NVME_SERVICE_PORT,
    array_uuid,
    filling_nqn,
    host_nqn,
    reader_nqn,
    scratch_nqn,
    sealed_nqn,
    slice_uuid,
)
from headrace.domain.nodeconfig import CopyConfig, ExportConfig, SliceConfig
from headrace.domain.plan import Plan, VolumePlan
from headrace.domain.run import NodeRow
from headrace.domain.scratch import WHOLE_PPM

_CONTROLLER_IDS = 32_000
"""Controller ids of one path; two paths to one namespace may not share any (kernel attributes cntlid_min, _max)."""


class _Held(NamedTuple):
    """A slice on a node: slice `slice_index` of the volume's part in storage place `member_index`."""

    volume: VolumePlan
    member_index: int
    slice_index: int
    is_copy: bool


def slices(plan: Plan, node: NodeRow) -> tuple[SliceConfig, ...]:
    """Return the equal parts that the node's disks are cut into, own ones first."""
    return tuple(
        SliceConfig(
            name=f"{one.volume.volume_id}-{one.member_index}-{one.slice_index}",
            namespace_uuid=slice_uuid(node.run_id, one.volume, one.member_index, one.slice_index),
            array_uuid=array_uuid(node.run_id, one.volume),
            share_ppm=_share_ppm(plan, one.volume) if one.volume.kind == "scratch" else None,
        )
        for one in _held(plan, node)
    )


def kept_ppm(plan: Plan) -> int:
    """Return how much of each storage node's disks is kept for scratch volumes, in parts per million.

    As much as the node with the most of them needs, since equal parts of the rest must be equal on all.
    """
    lent = [one for one in plan.chosen.volumes if one.held_by == "storage" and one.kind == "scratch"]
    if not lent:
        return 0
    most = max(Counter(one.member_node_indexes[0] for one in lent).values())
    return most * _share_ppm(plan, lent[0])


def _share_ppm(plan: Plan, volume: VolumePlan) -> int:
    fleet = plan.fleet("storage")
    if fleet is None:
        raise ValueError(f"volume {volume.volume_id} is held by storage nodes, and the plan has none")
    # Rounded, since the plan's bytes are those of a whole number of millionths, cut down to whole bytes.
    return (2 * volume.capacity_bytes * WHOLE_PPM // (fleet.disk_count * fleet.disk_bytes) + 1) // 2


def exports(plan: Plan, node: NodeRow, storage: Sequence[NodeRow]) -> tuple[ExportConfig, ...]:
    """Return what the node serves: to whoever fills a striped volume until it is sealed, then to the readers."""
    fleet = plan.fleet("compute")
    readers = tuple(reader_nqn(node.run_id, index) for index in range(fleet.count if fleet else 0))
    held = _held(plan, node)
    dataset = [one for one in held if one.volume.kind == "dataset"]
    return (*_filling(node, dataset, storage), *_sealed(node, dataset, readers, storage), *_lent(node, held))


def copies(plan: Plan, node: NodeRow, storage: Sequence[NodeRow]) -> tuple[CopyConfig, ...]:
    """Return which slices of which other nodes this node holds a second copy of."""
    by_index = {one.index: one for one in storage}
    return tuple(
        CopyConfig(
            namespace_uuid=slice_uuid(node.run_id, one.volume, one.member_index, one.slice_index),
            address=by_index[one.member_index].address,
            service_port=NVME_SERVICE_PORT,
            subsystem_nqn=sealed_nqn(node.run_id, one.member_index),
        )
        for one in _held(plan, node)
        if one.is_copy and one.member_index in by_index
    )


def _held(plan: Plan, node: NodeRow) -> list[_Held]:
    volumes = [one for one in plan.chosen.volumes if one.held_by == "storage"]
    places = [*_places(volumes, node.index), *_copied_places(volumes, node.index)]
    return [
        _Held(volume, member_index, number, is_copy)
        for volume, member_index, is_copy in places
        for number in range(volume.slices_per_member)
    ]


def _places(volumes: Sequence[VolumePlan], index: int) -> Iterator[tuple[VolumePlan, int, bool]]:
    return ((volume, index, False) for volume in volumes if index in volume.member_node_indexes)


def _copied_places(volumes: Sequence[VolumePlan], index: int) -> Iterator[tuple[VolumePlan, int, bool]]:
    for volume in volumes:
        # Without a mirror there is no second list at all.
        for member, mirror in zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=False):
            if mirror == index:
                yield volume, member, True


def _filling(node: NodeRow, held: Sequence[_Held], storage: Sequence[NodeRow]) -> Iterator[ExportConfig]:
    fillers = {one.index: one for one in storage}
    for one in held:
        filler = fillers.get(one.volume.hydrator_node_index)
        if one.is_copy or filler is None or filler.node_id == node.node_id:
            continue
        yield ExportConfig(
            subsystem_nqn=filling_nqn(node.run_id, one.volume.volume_id, node.index),
            namespace_id=one.slice_index + 1,
            namespace_uuid=slice_uuid(node.run_id, one.volume, one.member_index, one.slice_index),
            phase="filling",
            allowed_host_nqns=(host_nqn(filler),),
        )


def _sealed(
    node: NodeRow, held: Sequence[_Held], readers: tuple[str, ...], storage: Sequence[NodeRow]
) -> Iterator[ExportConfig]:
    numbers: dict[int, int] = {}
    for one in held:
        numbers[one.member_index] = number = numbers.get(one.member_index, 0) + 1
        first = 1 + _CONTROLLER_IDS * one.is_copy
        yield ExportConfig(
            subsystem_nqn=sealed_nqn(node.run_id, one.member_index),
            namespace_id=number,
            namespace_uuid=slice_uuid(node.run_id, one.volume, one.member_index, one.slice_index),
            phase="sealed",
            allowed_host_nqns=readers if one.is_copy else (*readers, *_copiers(one.volume, node.index, storage)),
            controller_id_min=first,
            controller_id_max=first + _CONTROLLER_IDS - 1,
        )


def _lent(node: NodeRow, held: Sequence[_Held]) -> Iterator[ExportConfig]:
    """Yield what one compute node alone reads and writes."""
    for one in held:
        if one.volume.kind == "scratch":
            yield ExportConfig(
                subsystem_nqn=scratch_nqn(node.run_id, one.volume.volume_id),
                namespace_id=one.slice_index + 1,
                namespace_uuid=slice_uuid(node.run_id, one.volume, one.member_index, one.slice_index),
                phase="always",
                allowed_host_nqns=(reader_nqn(node.run_id, one.volume.hydrator_node_index),),
            )


def _copiers(volume: VolumePlan, member_index: int, storage: Sequence[NodeRow]) -> list[str]:
    """Return the host names of the nodes that take a copy of this node's part of the volume."""
    pairs = zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=False)
    takers = {mirror for member, mirror in pairs if member == member_index}
    return [host_nqn(one) for one in sorted(storage, key=lambda one: one.index) if one.index in takers]
