"""Who exports what to whom: turns a plan and the machines that came into one configuration per machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from headrace.domain.exporting import copies, exports, kept_ppm, slices
from headrace.domain.fabric_names import (
    NVME_SERVICE_PORT,
    array_uuid,
    filling_nqn,
    host_nqn,
    scratch_nqn,
    sealed_nqn,
    slice_uuid,
    stable_uuid,
)
from headrace.domain.nodeconfig import ImportConfig, NodeConfig, VolumeConfig
from headrace.domain.plan import FleetPlan, Plan, VolumePlan
from headrace.domain.run import NodeRow


def configure_node(
    plan: Plan,
    node: NodeRow,
    storage: Sequence[NodeRow],
    shared_folders: dict[str, str],
    heartbeat_seconds: int,
    fabric: Literal["tcp", "roce"] | None = None,
) -> NodeConfig:
    """Return the configuration of one machine; `storage` are the storage nodes that are up, in any order.

    `shared_folders` maps node ids to folders where nodes share a file system, and is empty elsewhere. `fabric` is what
    probing decided, if it was to decide.
    """
    serves = node.role == "storage"
    return NodeConfig(
        run_id=node.run_id,
        attempt=node.attempt,
        node_id=node.node_id,
        role=node.role,
        host_nqn=host_nqn(node),
        address=node.address,
        fabric=fabric or plan.chosen.fabric,
        soft_roce=plan.chosen.fabric == "roce",
        heartbeat_seconds=heartbeat_seconds,
        volumes=tuple(
            volume_config(node, volume)
            for volume in plan.chosen.volumes
            if _is_made_by(volume, node) or _is_imported_by(volume, node)
        ),
        slices=slices(plan, node) if serves else (),
        kept_ppm=kept_ppm(plan) if serves else 0,
        exports=exports(plan, node, storage) if serves else (),
        copies=copies(plan, node, storage) if serves else (),
        imports=_imports(plan, node, storage, shared_folders),
    )


def probed_fabric(plan: Plan, asked: str, storage: Sequence[NodeRow]) -> Literal["tcp", "roce"] | None:
    """Return the fabric of the whole run where the job leaves it open: RoCE when all storage nodes have its hardware.

    None where nothing is open.
    """
    if asked != "auto" or plan.chosen.fabric != "tcp":
        return None
    return "roce" if storage and all(one.rdma_device for one in storage) else "tcp"


def _is_made_by(volume: VolumePlan, node: NodeRow) -> bool:
    is_lent = volume.kind == "scratch" and volume.held_by == "storage"
    return not is_lent and volume.held_by == node.role and volume.hydrator_node_index == node.index


def volume_config(node: NodeRow, volume: VolumePlan) -> VolumeConfig:
    """Return the volume as that machine sees it."""
    return VolumeConfig(
        volume_id=volume.volume_id,
        kind=volume.kind,
        array_name=f"{volume.volume_id}-{stable_uuid('run', node.run_id)[:8]}",
        array_uuid=array_uuid(node.run_id, volume),
        filesystem_uuid=stable_uuid("xfs", node.run_id, volume.volume_id),
        stripe_unit_bytes=volume.stripe_unit_bytes,
        members=len(volume.member_node_indexes) * volume.slices_per_member,
        hydrated_here=volume.kind == "dataset" and _is_made_by(volume, node),
        slices=_stripe(node.run_id, volume) if volume.held_by == "storage" else (),
    )


def _stripe(run_id: str, volume: VolumePlan) -> tuple[str, ...]:
    """Return the members in stripe order: neighbours on different machines, so that a long read uses all of them."""
    return tuple(
        slice_uuid(run_id, volume, member, number)
        for number in range(volume.slices_per_member)
        for member in volume.member_node_indexes
    )


def _imports(
    plan: Plan, node: NodeRow, storage: Sequence[NodeRow], shared_folders: dict[str, str]
) -> tuple[ImportConfig, ...]:
    wanted = [volume for volume in plan.chosen.volumes if _is_imported_by(volume, node)]
    servers = sorted((one for one in storage if one.node_id != node.node_id), key=lambda one: one.index)
    lent = [volume for volume in wanted if volume.kind == "scratch"]
    found = (
        _filled_through(wanted, servers)
        if node.role == "storage"
        else (*_read_from([one for one in wanted if one not in lent], servers), *_borrowed_from(lent, servers))
    )
    return tuple(
        ImportConfig(
            node_id=server.node_id,
            address=server.address,
            service_port=NVME_SERVICE_PORT,
            subsystem_nqn=nqn,
            volume_ids=volume_ids,
            queues=plan.chosen.queues_per_connection,
            shared_folder=shared_folders.get(server.node_id),
        )
        for server, nqn, volume_ids in found
    )


def _filled_through(
    wanted: Iterable[VolumePlan], servers: Sequence[NodeRow]
) -> Iterator[tuple[NodeRow, str, tuple[str, ...]]]:
    """Yield where a node that fills striped volumes reaches their members on other nodes."""
    for volume in wanted:
        for server in servers:
            if server.index in volume.member_node_indexes:
                yield server, filling_nqn(server.run_id, volume.volume_id, server.index), (volume.volume_id,)


def _read_from(
    wanted: Sequence[VolumePlan], servers: Sequence[NodeRow]
) -> Iterator[tuple[NodeRow, str, tuple[str, ...]]]:
    """Yield every path to sealed slices: the node that holds a part, and the one that holds its copy."""
    for server in servers:
        parts: dict[int, list[str]] = {}
        for volume in wanted:
            for member in _parts_on(volume, server.index):
                parts.setdefault(member, []).append(volume.volume_id)
        # Its own part first, whatever the number of the other.
        for member in sorted(parts, key=lambda one: (one != server.index, one)):
            yield server, sealed_nqn(server.run_id, member), tuple(parts[member])


def _borrowed_from(
    lent: Sequence[VolumePlan], servers: Sequence[NodeRow]
) -> Iterator[tuple[NodeRow, str, tuple[str, ...]]]:
    """Yield where a compute node reaches its scratch volume."""
    for volume in lent:
        for server in servers:
            if server.index in volume.member_node_indexes:
                yield server, scratch_nqn(server.run_id, volume.volume_id), (volume.volume_id,)


def _parts_on(volume: VolumePlan, index: int) -> Iterator[int]:
    pairs = zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=False)
    yield from (member for member in volume.member_node_indexes if member == index)
    yield from (member for member, mirror in pairs if mirror == index)


def _is_imported_by(volume: VolumePlan, node: NodeRow) -> bool:
    """Tell whether a node reaches the volume over the fabric.

    Compute nodes read every data set volume of the storage fleet and write their own scratch; a hydrator of a striped
    volume reaches its other members.
    """
    if volume.held_by != "storage":
        return False
    if volume.kind == "scratch":
        return node.role == "compute" and volume.hydrator_node_index == node.index
    return node.role == "compute" or volume.hydrator_node_index == node.index


def missing_indexes(fleet: FleetPlan, standing: Iterable[NodeRow], attempt: int) -> tuple[int, ...]:
    """Return the places of the fleet that this launch attempt fills.

    Places filled by the same attempt count as missing, so that a repeated launch asks for the same number again and
    its client token gives the same machines.
    """
    taken = {node.index for node in standing if node.attempt != attempt}
    return tuple(index for index in range(fleet.count) if index not in taken)
