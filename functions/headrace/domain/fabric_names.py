"""The stable names of the fabric: the same parts give the same name, so a repeated configuration finds its own."""

from __future__ import annotations

import uuid

from headrace.domain.names import name_uuid
from headrace.domain.plan import VolumePlan
from headrace.domain.run import NodeRow

NVME_SERVICE_PORT = 4420
"""IANA's port for NVMe over Fabrics."""


def stable_uuid(*parts: object) -> str:
    """Return the same UUID for the same parts (a version 5 UUID)."""
    return name_uuid(uuid.NAMESPACE_OID, "/".join(map(str, parts)))


def reader_nqn(run_id: str, index: int) -> str:
    """Return the NVMe qualified name of the compute node in that place, so that it can be allowed before its launch."""
    return _host_nqn("host", run_id, "compute", index)


def host_nqn(node: NodeRow) -> str:
    """Return the NVMe qualified name under which a machine connects to others.

    A compute node's names its place. A storage node's names the machine: it writes, and one that was replaced must
    not be taken for its successor.
    """
    if node.role == "compute":
        return reader_nqn(node.run_id, node.index)
    return _host_nqn("host", node.run_id, "storage", node.node_id)


def sealed_nqn(run_id: str, member_index: int) -> str:
    """Return the name of the subsystem with all sealed slices of storage place `member_index`.

    It names the bytes, not the machine: a second copy is served under the same name.
    """
    return f"nqn.2026-01.io.headrace:{run_id}:sealed-{member_index}"


def filling_nqn(run_id: str, volume_id: str, member_index: int) -> str:
    """Return the name of the subsystem by which the node that fills a volume reaches one of its other members."""
    return f"nqn.2026-01.io.headrace:{run_id}:filling-{volume_id}-{member_index}"


def scratch_nqn(run_id: str, volume_id: str) -> str:
    """Return the name of the subsystem by which one compute node reaches its scratch volume on a storage node."""
    return f"nqn.2026-01.io.headrace:{run_id}:{volume_id}"


def array_uuid(run_id: str, volume: VolumePlan) -> str:
    """Return the UUID of the array that the volume's slices make."""
    return stable_uuid("array", run_id, volume.volume_id)


def slice_uuid(run_id: str, volume: VolumePlan, member_index: int, slice_index: int) -> str:
    """Return the UUID of one slice, which every copy of it carries."""
    return stable_uuid("slice", run_id, member_index, volume.volume_id, slice_index)


def _host_nqn(*parts: object) -> str:
    return f"nqn.2014-08.org.nvmexpress:uuid:{stable_uuid(*parts)}"
