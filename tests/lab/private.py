"""Volumes that one compute machine alone reads and writes, on slices of both storage machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headrace.domain.fabric_names import NVME_SERVICE_PORT, host_nqn, stable_uuid
from headrace.domain.nodeconfig import ExportConfig, ImportConfig, NodeConfig, SliceConfig, VolumeConfig
from tests.lab.layouts import QUEUES, STRIPE_UNIT_BYTES
from tests.lab.machines import DISKS, PLACES, RUN_ID

STORAGE, COMPUTE = ("s0", "s1"), ("c0", "c1")


def nqn(owner: str, server: str) -> str:
    """Return the subsystem of a compute machine on a storage machine."""
    return f"nqn.2026-01.io.headrace:{RUN_ID}:private-{owner}-{server}"


def slice_of(owner: str, server: str, number: int) -> str:
    return stable_uuid("private", owner, server, number)


def configs(
    fabric: str,
    raid_level: Literal[0, 1, 10],
    admitted: Mapping[str, str] | None = None,
    *,
    fast_fail_seconds: int = 30,
    keep_alive_seconds: int = 5,
    each: int = DISKS,
) -> dict[str, NodeConfig]:
    """Return the configurations, with `each` slices of each storage machine for each owner.

    `admitted` names another machine that an owner's slices admit instead.
    """
    kind: Literal["tcp", "roce"] = "roce" if fabric == "roce" else "tcp"
    made = {name: _storage(name, kind, admitted or {}, each) for name in STORAGE}
    bounds = {"fast_fail_seconds": fast_fail_seconds, "keep_alive_seconds": keep_alive_seconds}
    return made | {name: _compute(name, kind, raid_level, bounds, each) for name in COMPUTE}


def _base(name: str, fabric: Literal["tcp", "roce"]) -> NodeConfig:
    row = PLACES[name].row()
    return NodeConfig(
        run_id=RUN_ID,
        attempt=1,
        node_id=name,
        role=row.role,
        host_nqn=host_nqn(row),
        address=row.address,
        fabric=fabric,
        soft_roce=fabric == "roce",
        heartbeat_seconds=15,
    )


def _storage(name: str, fabric: Literal["tcp", "roce"], admitted: Mapping[str, str], each: int) -> NodeConfig:
    held = [(owner, number) for owner in COMPUTE for number in range(each)]
    slices = tuple(
        SliceConfig(
            name=f"private-{owner}-{number}",
            namespace_uuid=slice_of(owner, name, number),
            array_uuid=stable_uuid("private array", owner),
        )
        for owner, number in held
    )
    exports = tuple(
        ExportConfig(
            subsystem_nqn=nqn(owner, name),
            namespace_id=number + 1,
            namespace_uuid=slice_of(owner, name, number),
            phase="always",
            allowed_host_nqns=(host_nqn(PLACES[admitted.get(owner, owner)].row()),),
        )
        for owner, number in held
    )
    return _base(name, fabric).model_copy(update={"slices": slices, "exports": exports})


def _compute(
    name: str, fabric: Literal["tcp", "roce"], raid_level: Literal[0, 1, 10], bounds: Mapping[str, int], each: int
) -> NodeConfig:
    members = tuple(slice_of(name, server, number) for number in range(each) for server in STORAGE)
    volume = VolumeConfig(
        volume_id="scratch-000",
        kind="scratch",
        array_name=f"scratch-{name}",
        array_uuid=stable_uuid("private array", name),
        filesystem_uuid=stable_uuid("private xfs", name),
        stripe_unit_bytes=STRIPE_UNIT_BYTES,
        members=len(members),
        hydrated_here=False,
        raid_level=raid_level,
        slices=members,
    )
    imports = tuple(
        ImportConfig(
            node_id=server,
            address=PLACES[server].row().address,
            service_port=NVME_SERVICE_PORT,
            subsystem_nqn=nqn(name, server),
            volume_ids=("scratch-000",),
            queues=QUEUES,
            **bounds,
        )
        for server in STORAGE
    )
    return _base(name, fabric).model_copy(update={"volumes": (volume,), "imports": imports})
