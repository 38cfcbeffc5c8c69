"""Who exports what to whom: every slice is served once, to its readers only, and named the same each time."""

from __future__ import annotations

from headrace.domain.plan import BindingLimit, DemandPlan, FleetPlan, OptionPlan, Plan, Role, VolumePlan
from headrace.domain.wiring import configure_node, host_nqn, missing_indexes, subsystem_nqn
from tests.domain.rows import node_row


def fleet(role: Role, count: int) -> FleetPlan:
    return FleetPlan(
        role=role,
        instance_type="x.large",
        count=count,
        arch="x86_64",
        usd_per_hour_each=1.0,
        nic_bytes_per_s=1,
        disk_count=2,
        disk_bytes=1,
    )


def volume(index: int, members: tuple[int, ...], held_by: Role = "storage") -> VolumePlan:
    return VolumePlan(
        volume_id=f"dataset-{index}",
        kind="dataset",
        shape="spread" if len(members) == 1 else "striped",
        held_by=held_by,
        hydrator_node_index=members[0],
        member_node_indexes=members,
        slices_per_member=2,
        stripe_unit_bytes=131072,
        capacity_bytes=10**9,
    )


def plan(volumes: tuple[VolumePlan, ...], storage: int = 2, compute: int = 3) -> Plan:
    option = OptionPlan(
        storage="fleet",
        fleets=(fleet("storage", storage), fleet("compute", compute)),
        volumes=volumes,
        fabric="tcp",
        queues_per_connection=4,
        phases=(),
        usd_per_hour=1,
        usd_low=1,
        usd_high=1,
        limit=BindingLimit(name="none", offered=1, needed=1, unit="bytes/s", because=""),
        reasons=(),
    )
    demand = DemandPlan(read_bytes_per_s=1, capacity_bytes=1, dataset_bytes=1, dataset_files=1, basis="")
    return Plan(job_name="j", region="us-east-1", demand=demand, chosen=option, catalog_date="2026-01-01")


SPREAD = plan((volume(0, (0,)), volume(1, (1,))))
STORAGE = [node_row(f"s{index}", role="storage", index=index, address=f"10.0.1.{index}") for index in (0, 1)]
COMPUTE = node_row("c0", index=0)


def test_a_storage_node_exports_its_own_slices_to_the_compute_nodes_and_to_nobody_else() -> None:
    config = configure_node(SPREAD, STORAGE[1], STORAGE, {}, 15)
    assert [(one.volume_id, one.namespace_id) for one in config.exports] == [("dataset-1", 1), ("dataset-1", 2)]
    allowed = {host_nqn("small-1", "compute", index) for index in range(3)}
    assert {nqn for one in config.exports for nqn in one.allowed_host_nqns} == allowed


def test_a_compute_node_connects_to_every_storage_node_once() -> None:
    config = configure_node(SPREAD, COMPUTE, list(reversed(STORAGE)), {"s0": "/shared/s0"}, 15)
    assert [(one.subsystem_nqn, one.volume_ids, one.address, one.shared_folder) for one in config.imports] == [
        (subsystem_nqn("small-1", 0), ("dataset-0",), "10.0.1.0", "/shared/s0"),
        (subsystem_nqn("small-1", 1), ("dataset-1",), "10.0.1.1", None),
    ]


def test_a_compute_node_is_told_what_it_mounts_and_fills_none_of_it() -> None:
    config = configure_node(SPREAD, COMPUTE, STORAGE, {}, 15)
    assert [(one.volume_id, one.hydrated_here) for one in config.volumes] == [
        ("dataset-0", False),
        ("dataset-1", False),
    ]
    (filled,) = configure_node(SPREAD, STORAGE[1], STORAGE, {}, 15).volumes
    assert filled.hydrated_here
    assert filled.filesystem_uuid == config.volumes[1].filesystem_uuid


def test_only_the_hydrator_makes_a_volume_and_it_may_connect_to_the_members() -> None:
    striped = plan((volume(0, (0, 1)),))
    hydrator, member = (configure_node(striped, node, STORAGE, {}, 15) for node in STORAGE)
    assert [one.members for one in hydrator.volumes] == [4]
    assert member.volumes == ()
    assert [one.node_id for one in hydrator.imports] == ["s1"]
    assert member.imports == ()
    assert host_nqn("small-1", "storage", 0) in member.exports[0].allowed_host_nqns


def test_namespaces_of_different_slices_have_different_uuids_and_the_same_each_time() -> None:
    first, again = (configure_node(SPREAD, STORAGE[0], STORAGE, {}, 15) for _ in range(2))
    assert first == again
    assert len({one.namespace_uuid for one in first.exports}) == 2


def test_a_repeated_launch_asks_for_the_same_places_again() -> None:
    storage = fleet("storage", 3)
    assert missing_indexes(storage, [], 1) == (0, 1, 2)
    assert missing_indexes(storage, [node_row(index=0), node_row(index=1)], 1) == (0, 1, 2)
    assert missing_indexes(storage, [node_row(index=0), node_row(index=2)], 2) == (1,)
