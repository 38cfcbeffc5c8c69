"""Plans for four machines, and the configurations that the product's own wiring makes of them."""

from __future__ import annotations

from typing import Any

from headrace.domain.nodeconfig import NodeConfig
from headrace.domain.plan import BindingLimit, DemandPlan, FleetPlan, OptionPlan, Plan, Role, VolumePlan
from headrace.domain.wiring import configure_node
from tests.lab.machines import DISKS, PLACES

QUEUES = 1
STRIPE_UNIT_BYTES = 128 * 1024
NODE_BYTES = DISKS * 10**9


def volume(
    number: int, filler: int, members: tuple[int, ...], mirrors: tuple[int, ...] = (), slices: int = DISKS
) -> VolumePlan:
    """Return a dataset volume held by storage nodes."""
    return VolumePlan(
        volume_id=f"dataset-{number:03d}",
        kind="dataset",
        shape="spread" if len(members) == 1 else "striped",
        held_by="storage",
        hydrator_node_index=filler,
        member_node_indexes=members,
        mirror_node_indexes=mirrors,
        slices_per_member=slices,
        stripe_unit_bytes=STRIPE_UNIT_BYTES,
        capacity_bytes=10**9,
    )


def scratch(index: int, member: int, share: float) -> VolumePlan:
    """Return the volume of a compute node on one storage node, a share of its disks."""
    changes = {"volume_id": f"scratch-{index:03d}", "kind": "scratch", "hydrator_node_index": index}
    return volume(index, member, (member,)).model_copy(update={**changes, "capacity_bytes": int(share * NODE_BYTES)})


SPREAD = (volume(0, 0, (0,)), volume(1, 1, (1,)))
STRIPED = (volume(0, 0, (0, 1)), volume(1, 1, (0, 1)))
LENT = (volume(0, 0, (0, 1)), scratch(0, 0, share=0.6))
"""A striped data set, and beside it on the first storage node what a compute node writes."""
MIRRORED = (volume(0, 0, (0,), (1,), slices=1),)


def configs(volumes: tuple[VolumePlan, ...], fabric: str, **import_changes: Any) -> dict[str, NodeConfig]:
    """Return the configuration of every machine; `import_changes` replace the bounds of each connection."""
    plan = plan_of(volumes, fabric)
    storage = [place.row() for place in PLACES.values() if place.role == "storage"]
    made = {name: configure_node(plan, place.row(), storage, {}, 15) for name, place in PLACES.items()}
    return {name: _with_bounds(config, import_changes) for name, config in made.items()}


def _with_bounds(config: NodeConfig, changes: dict[str, Any]) -> NodeConfig:
    imports = tuple(one.model_copy(update=changes) for one in config.imports)
    return config.model_copy(update={"imports": imports})


def plan_of(volumes: tuple[VolumePlan, ...], fabric: str) -> Plan:
    """Return a plan of two storage and two compute machines with these volumes."""
    option = OptionPlan(
        storage="fleet",
        fleets=(_fleet("storage"), _fleet("compute")),
        volumes=volumes,
        fabric="roce" if fabric == "roce" else "tcp",
        queues_per_connection=QUEUES,
        phases=(),
        usd_per_hour=0,
        usd_low=0,
        usd_high=0,
        limit=BindingLimit(name="none", offered=1, needed=1, unit="bytes/s", because=""),
        reasons=(),
    )
    demand = DemandPlan(read_bytes_per_s=1, capacity_bytes=1, dataset_bytes=1, dataset_files=1, basis="")
    return Plan(job_name="lab", region="us-east-1", demand=demand, chosen=option, catalog_date="2026-01-01")


def _fleet(role: Role) -> FleetPlan:
    return FleetPlan(
        role=role,
        instance_type="vm",
        count=2,
        arch="x86_64",
        usd_per_hour_each=0,
        nic_bytes_per_s=1,
        disk_count=DISKS,
        disk_bytes=NODE_BYTES // DISKS,
    )
