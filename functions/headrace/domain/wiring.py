"""Who exports what to whom: turns a plan and the machines that came into one configuration per machine."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from headrace.domain.names import name_uuid
from headrace.domain.nodeconfig import ExportConfig, ImportConfig, NodeConfig, VolumeConfig
from headrace.domain.plan import FleetPlan, Plan, Role, VolumePlan
from headrace.domain.run import NodeRow

NVME_SERVICE_PORT = 4420
"""IANA's port for NVMe over Fabrics."""


def stable_uuid(*parts: object) -> str:
    """Return the same UUID for the same parts, so that a repeated configuration finds what it made before."""
    return name_uuid(uuid.NAMESPACE_OID, "/".join(map(str, parts)))


def host_nqn(run_id: str, role: Role, index: int) -> str:
    """Return the NVMe qualified name under which a machine connects to others.

    It names the place in the fleet, not the machine, so exports can allow it before the machine is launched.
    """
    return f"nqn.2014-08.org.nvmexpress:uuid:{stable_uuid('host', run_id, role, index)}"


def subsystem_nqn(run_id: str, index: int) -> str:
    """Return the NVMe qualified name of what storage node `index` serves."""
    return f"nqn.2026-01.io.headrace:{run_id}:storage-{index}"


def configure_node(
    plan: Plan, node: NodeRow, storage: Sequence[NodeRow], shared_folders: dict[str, str], heartbeat_seconds: int
) -> NodeConfig:
    """Return the configuration of one machine; `storage` are the storage nodes that are up, in any order.

    `shared_folders` maps node ids to folders where nodes share a file system, and is empty elsewhere.
    """
    return NodeConfig(
        run_id=node.run_id,
        attempt=node.attempt,
        node_id=node.node_id,
        role=node.role,
        host_nqn=host_nqn(node.run_id, node.role, node.index),
        fabric=plan.chosen.fabric,
        heartbeat_seconds=heartbeat_seconds,
        volumes=tuple(
            _volume(node, volume)
            for volume in plan.chosen.volumes
            if _is_made_by(volume, node) or _is_imported_by(volume, node)
        ),
        exports=_exports(plan, node) if node.role == "storage" else (),
        imports=_imports(plan, node, storage, shared_folders),
    )


def _is_made_by(volume: VolumePlan, node: NodeRow) -> bool:
    return volume.held_by == node.role and volume.hydrator_node_index == node.index


def _volume(node: NodeRow, volume: VolumePlan) -> VolumeConfig:
    return VolumeConfig(
        volume_id=volume.volume_id,
        kind=volume.kind,
        array_name=f"{node.run_id}-{volume.volume_id}"[:32],
        array_uuid=stable_uuid("array", node.run_id, volume.volume_id),
        filesystem_uuid=stable_uuid("xfs", node.run_id, volume.volume_id),
        stripe_unit_bytes=volume.stripe_unit_bytes,
        members=len(volume.member_node_indexes) * volume.slices_per_member,
        hydrated_here=volume.kind == "dataset" and _is_made_by(volume, node),
    )


def _exports(plan: Plan, node: NodeRow) -> tuple[ExportConfig, ...]:
    slices = [
        (volume, slice_index)
        for volume in plan.chosen.volumes
        if volume.held_by == "storage" and node.index in volume.member_node_indexes
        for slice_index in range(volume.slices_per_member)
    ]
    return tuple(
        ExportConfig(
            subsystem_nqn=subsystem_nqn(node.run_id, node.index),
            namespace_id=number,
            namespace_uuid=stable_uuid("slice", node.run_id, node.index, volume.volume_id, slice_index),
            volume_id=volume.volume_id,
            slice_index=slice_index,
            allowed_host_nqns=_allowed_hosts(plan, node, volume),
        )
        for number, (volume, slice_index) in enumerate(slices, start=1)
    )


def _allowed_hosts(plan: Plan, node: NodeRow, volume: VolumePlan) -> tuple[str, ...]:
    compute = plan.fleet("compute")
    readers = [host_nqn(node.run_id, "compute", index) for index in range(compute.count if compute else 0)]
    if volume.hydrator_node_index != node.index:
        readers.append(host_nqn(node.run_id, "storage", volume.hydrator_node_index))
    return tuple(readers)


def _imports(
    plan: Plan, node: NodeRow, storage: Iterable[NodeRow], shared_folders: dict[str, str]
) -> tuple[ImportConfig, ...]:
    wanted = [volume for volume in plan.chosen.volumes if _is_imported_by(volume, node)]
    connections = []
    for server in sorted(storage, key=lambda one: one.index):
        volume_ids = tuple(one.volume_id for one in wanted if server.index in one.member_node_indexes)
        if volume_ids and server.node_id != node.node_id:
            connections.append(
                ImportConfig(
                    node_id=server.node_id,
                    address=server.address,
                    service_port=NVME_SERVICE_PORT,
                    subsystem_nqn=subsystem_nqn(node.run_id, server.index),
                    volume_ids=volume_ids,
                    queues=plan.chosen.queues_per_connection,
                    shared_folder=shared_folders.get(server.node_id),
                )
            )
    return tuple(connections)


def _is_imported_by(volume: VolumePlan, node: NodeRow) -> bool:
    """Compute nodes read every volume of the storage fleet; a hydrator of a striped one reaches its other members."""
    if volume.held_by != "storage":
        return False
    return node.role == "compute" or volume.hydrator_node_index == node.index


def missing_indexes(fleet: FleetPlan, standing: Iterable[NodeRow], attempt: int) -> tuple[int, ...]:
    """Return the places of the fleet that this launch attempt fills.

    Places filled by the same attempt count as missing, so that a repeated launch asks for the same number again and
    its client token gives the same machines.
    """
    taken = {node.index for node in standing if node.attempt != attempt}
    return tuple(index for index in range(fleet.count) if index not in taken)
