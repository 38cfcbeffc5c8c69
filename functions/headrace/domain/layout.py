"""Volumes: which SSDs make which XFS file system, and how readers connect to them."""

from __future__ import annotations

import math
from typing import Literal

from headrace.domain import calibration
from headrace.domain.candidates import Candidate
from headrace.domain.connections import queues
from headrace.domain.demand import capacity_bytes
from headrace.domain.fleets import StorageOffer
from headrace.domain.plan import VolumePlan
from headrace.domain.scratch import borrowers, lent_bytes

_BLOCK_BYTES = 4096
_LOG_STRIPE_BYTES_MAX = 256 * 1024
_SECTOR_BYTES = 512
_SLICE_STEP_BYTES = 2**20
"""Slices of an SSD that several volumes share begin and end on whole MiB."""


def volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return the data set's volumes, in the order that assignments use, and then the scratch volumes."""
    if candidate.kind == "local":
        return (*_local_volumes(candidate), *_scratch_volumes(candidate))
    if candidate.kind == "direct":
        return _scratch_volumes(candidate)
    held = _spread_volumes(candidate) if candidate.shape == "spread" else _striped_volumes(candidate)
    return (*held, *_scratch_volumes(candidate))


def _spread_volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return one volume per storage node on its own SSDs; the next node holds its mirror."""
    offer, nodes = candidate.storage, candidate.storage_nodes
    if offer is None:
        return ()
    return tuple(
        VolumePlan(
            volume_id=f"dataset-{index:03d}",
            kind="dataset",
            shape="spread",
            held_by="storage",
            hydrator_node_index=index,
            member_node_indexes=(index,),
            mirror_node_indexes=((index + 1) % nodes,) if candidate.copies > 1 else (),
            slices_per_member=offer.machine.disk_count,
            stripe_unit_bytes=calibration.STRIPE_UNIT_BYTES,
            capacity_bytes=_dataset_bytes(candidate, offer) // candidate.copies,
        )
        for index in range(nodes)
    )


def _striped_volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return volumes over all storage nodes, filled by different ones; mirrors lie one node on."""
    offer, nodes = candidate.storage, candidate.storage_nodes
    if offer is None:
        return ()
    count = candidate.volumes
    members = tuple(range(nodes))
    return tuple(
        VolumePlan(
            volume_id=f"dataset-{index:03d}",
            kind="dataset",
            shape="striped",
            held_by="storage",
            hydrator_node_index=index * nodes // count,
            member_node_indexes=members,
            mirror_node_indexes=(*members[1:], members[0]) if candidate.copies > 1 else (),
            slices_per_member=offer.machine.disk_count,
            stripe_unit_bytes=calibration.STRIPE_UNIT_BYTES,
            capacity_bytes=_dataset_bytes(candidate, offer) * nodes // (count * candidate.copies),
        )
        for index in range(count)
    )


def _dataset_bytes(candidate: Candidate, offer: StorageOffer) -> int:
    """Return what each storage node has for the data set; the same on all, since copies must be of one size."""
    return offer.machine.ssd_bytes - borrowers(candidate) * lent_bytes(candidate)


def _local_volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return one volume per compute node, each of which holds all of the data set."""
    needed = _own_dataset_bytes(candidate)
    return _own_volumes(candidate, "dataset", needed)


def _scratch_volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return one volume per compute node: on its own SSDs, or else on a storage node's, which outlives it.

    None where neither has room beside the data set.
    """
    if candidate.kind == "fleet" and not candidate.compute.machine.ssd_bytes:
        return _lent_volumes(candidate)
    taken = _own_dataset_bytes(candidate) if candidate.kind == "local" else 0
    free = candidate.compute.machine.ssd_bytes - taken
    if free < calibration.VOLUME_OVERHEAD_BYTES:
        return ()
    return _own_volumes(candidate, "scratch", free)


def _lent_volumes(candidate: Candidate) -> tuple[VolumePlan, ...]:
    """Return one volume per compute node, whole on one storage node, so that this one alone can read it."""
    offer, capacity = candidate.storage, lent_bytes(candidate)
    if offer is None or not capacity:
        return ()
    return tuple(
        VolumePlan(
            volume_id=f"scratch-{index:03d}",
            kind="scratch",
            shape="spread",
            held_by="storage",
            hydrator_node_index=index,
            member_node_indexes=(index % candidate.storage_nodes,),
            slices_per_member=offer.machine.disk_count,
            stripe_unit_bytes=calibration.STRIPE_UNIT_BYTES,
            capacity_bytes=capacity,
        )
        for index in range(candidate.compute.count)
    )


def _own_dataset_bytes(candidate: Candidate) -> int:
    """Return what the data set takes of a compute node's SSDs, in whole `_SLICE_STEP_BYTES` of each."""
    machine = candidate.compute.machine
    step = _SLICE_STEP_BYTES * machine.disk_count
    needed = capacity_bytes(candidate.dataset.bytes, candidate.dataset.files, 1)
    return min(math.ceil(needed / step) * step, machine.ssd_bytes)


def _own_volumes(candidate: Candidate, kind: Literal["dataset", "scratch"], capacity: int) -> tuple[VolumePlan, ...]:
    """Return one volume per compute node, on all of its SSDs."""
    return tuple(
        VolumePlan(
            volume_id=f"{kind}-{index:03d}",
            kind=kind,
            shape="spread",
            held_by="compute",
            hydrator_node_index=index,
            member_node_indexes=(index,),
            slices_per_member=candidate.compute.machine.disk_count,
            stripe_unit_bytes=calibration.STRIPE_UNIT_BYTES,
            capacity_bytes=capacity,
        )
        for index in range(candidate.compute.count)
    )


def queues_per_connection(candidate: Candidate) -> int:
    """Return the I/O queues of one connection; 0 where nothing is connected."""
    if candidate.storage is None:
        return 0
    return queues(candidate.need.node_bytes_per_s, candidate.compute, candidate.storage, candidate.storage_nodes)


def geometry_faults(stripe_unit_bytes: int, data_slices: int) -> tuple[str, ...]:
    """Return why mkfs.xfs would refuse or change `-d su=...,sw=...` (measured on xfsprogs 6.1.0), or nothing."""
    checks = (
        (data_slices < 1, f"a stripe needs at least one slice, got {data_slices}"),
        (stripe_unit_bytes < _BLOCK_BYTES, f"the stripe unit is below the block of {_BLOCK_BYTES} bytes"),
        (stripe_unit_bytes % _BLOCK_BYTES != 0, f"the stripe unit is no multiple of {_BLOCK_BYTES} bytes"),
        (stripe_unit_bytes > _LOG_STRIPE_BYTES_MAX, "above 256 KiB the log stripe is cut to 32 KiB"),
        (
            stripe_unit_bytes // _SECTOR_BYTES * data_slices >= 2**31,
            "the stripe width overflows its 32-bit sector count",
        ),
    )
    return tuple(reason for applies, reason in checks if applies)
