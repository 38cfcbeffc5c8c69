"""Who exports what to whom: every slice is served once, to its readers only, and named the same each time."""

from __future__ import annotations

import pytest

from headrace.domain.fabric_names import filling_nqn, host_nqn, reader_nqn, scratch_nqn, sealed_nqn
from headrace.domain.mirroring import can_do_without
from headrace.domain.nodeconfig import NodeConfig
from headrace.domain.plan import BindingLimit, DemandPlan, FleetPlan, OptionPlan, Plan, Role, VolumePlan
from headrace.domain.run import NodeRow
from headrace.domain.wiring import configure_node, missing_indexes, probed_fabric
from tests.domain.rows import node_row

DISKS_BYTES = 2 * 10**10
"""Of one storage node."""


def fleet(role: Role, count: int) -> FleetPlan:
    return FleetPlan(
        role=role,
        instance_type="x.large",
        count=count,
        arch="x86_64",
        usd_per_hour_each=1.0,
        nic_bytes_per_s=1,
        disk_count=2,
        disk_bytes=DISKS_BYTES // 2,
    )


def volume(
    index: int, members: tuple[int, ...], held_by: Role = "storage", mirrors: tuple[int, ...] = ()
) -> VolumePlan:
    return VolumePlan(
        volume_id=f"dataset-{index}",
        kind="dataset",
        shape="spread" if len(members) == 1 else "striped",
        held_by=held_by,
        hydrator_node_index=members[0],
        member_node_indexes=members,
        mirror_node_indexes=mirrors,
        slices_per_member=2,
        stripe_unit_bytes=131072,
        capacity_bytes=10**9,
    )


def scratch(index: int, member: int) -> VolumePlan:
    """Return a compute node's volume on one storage node, a tenth of its disks."""
    changes = {"volume_id": f"scratch-{index}", "kind": "scratch", "hydrator_node_index": index}
    return volume(index, (member,)).model_copy(update={**changes, "capacity_bytes": DISKS_BYTES // 10})


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
STRIPED = plan((volume(0, (0, 1)),))
MIRRORED = plan((volume(0, (0,), mirrors=(1,)), volume(1, (1,), mirrors=(0,))))
LENT = plan((volume(0, (0,)), volume(1, (1,)), scratch(0, 0), scratch(1, 1), scratch(2, 0)))
STORAGE = [node_row(f"s{index}", role="storage", index=index, address=f"10.0.1.{index}") for index in (0, 1)]
COMPUTE = node_row("c0", index=0)
READERS = {reader_nqn("small-1", index) for index in range(3)}


def configured(made: Plan, node: NodeRow) -> NodeConfig:
    return configure_node(made, node, STORAGE, {}, 15)


def test_a_storage_node_serves_its_sealed_slices_to_the_compute_nodes_and_to_nobody_else() -> None:
    config = configured(SPREAD, STORAGE[1])
    assert [one.name for one in config.slices] == ["dataset-1-1-0", "dataset-1-1-1"]
    assert [(one.namespace_uuid, one.namespace_id, one.phase) for one in config.exports] == [
        (config.slices[0].namespace_uuid, 1, "sealed"),
        (config.slices[1].namespace_uuid, 2, "sealed"),
    ]
    assert {nqn for one in config.exports for nqn in one.allowed_host_nqns} == READERS


def test_a_compute_node_connects_to_every_storage_node_once() -> None:
    config = configure_node(SPREAD, COMPUTE, list(reversed(STORAGE)), {"s0": "/shared/s0"}, 15)
    assert [(one.subsystem_nqn, one.volume_ids, one.address, one.shared_folder) for one in config.imports] == [
        (sealed_nqn("small-1", 0), ("dataset-0",), "10.0.1.0", "/shared/s0"),
        (sealed_nqn("small-1", 1), ("dataset-1",), "10.0.1.1", None),
    ]


def test_a_compute_node_is_told_what_it_mounts_and_fills_none_of_it() -> None:
    config = configured(SPREAD, COMPUTE)
    assert [(one.volume_id, one.hydrated_here) for one in config.volumes] == [
        ("dataset-0", False),
        ("dataset-1", False),
    ]
    filler = configured(SPREAD, STORAGE[1])
    (filled,) = filler.volumes
    assert filled.hydrated_here
    assert filled.filesystem_uuid == config.volumes[1].filesystem_uuid
    assert filled.slices == config.volumes[1].slices == tuple(one.namespace_uuid for one in filler.slices)


def test_only_the_hydrator_makes_a_striped_volume_and_it_reaches_the_members_until_they_are_sealed() -> None:
    hydrator, member = (configured(STRIPED, node) for node in STORAGE)
    assert [one.members for one in hydrator.volumes] == [4]
    assert member.volumes == ()
    assert [(one.node_id, one.subsystem_nqn) for one in hydrator.imports] == [
        ("s1", filling_nqn("small-1", "dataset-0", 1))
    ]
    assert member.imports == ()
    filling = [one for one in member.exports if one.phase == "filling"]
    assert [one.allowed_host_nqns for one in filling] == [(hydrator.host_nqn,)] * 2
    assert {one.subsystem_nqn for one in filling} == {hydrator.imports[0].subsystem_nqn}
    assert [one for one in hydrator.exports if one.phase == "filling"] == []
    assert {host for one in member.exports if one.phase == "sealed" for host in one.allowed_host_nqns} == READERS


def test_neighbours_in_a_stripe_lie_on_different_machines() -> None:
    hydrator, member = (configured(STRIPED, node) for node in STORAGE)
    own, others = ([one.namespace_uuid for one in config.slices] for config in (hydrator, member))
    assert hydrator.volumes[0].slices == (own[0], others[0], own[1], others[1])


def test_a_replaced_storage_node_is_another_host_and_a_replaced_compute_node_is_the_same() -> None:
    successor = node_row("s9", role="storage", index=0, attempt=2)
    assert host_nqn(successor) != host_nqn(STORAGE[0])
    assert host_nqn(node_row("c9", index=0, attempt=2)) == host_nqn(COMPUTE)


def test_a_copy_is_served_under_the_names_of_the_original_with_other_controller_ids() -> None:
    original, holder = (configured(MIRRORED, node) for node in STORAGE)
    first = [one for one in original.exports if one.subsystem_nqn == sealed_nqn("small-1", 0)]
    second = [one for one in holder.exports if one.subsystem_nqn == sealed_nqn("small-1", 0)]
    names = [[(one.namespace_id, one.namespace_uuid) for one in exports] for exports in (first, second)]
    assert names[0] == names[1]
    assert max(one.controller_id_max for one in first) < min(one.controller_id_min for one in second)
    assert max(one.controller_id_max for one in second) < 0xFFF0


def test_a_copy_is_taken_from_the_node_that_holds_the_original_which_admits_the_taker() -> None:
    original, holder = (configured(MIRRORED, node) for node in STORAGE)
    assert [(one.subsystem_nqn, one.address) for one in holder.copies] == [(sealed_nqn("small-1", 0), "10.0.1.0")] * 2
    own = [one for one in original.exports if one.subsystem_nqn == sealed_nqn("small-1", 0)]
    assert all(set(one.allowed_host_nqns) == READERS | {holder.host_nqn} for one in own)
    copies = [one for one in holder.exports if one.subsystem_nqn == sealed_nqn("small-1", 0)]
    assert all(set(one.allowed_host_nqns) == READERS for one in copies)


def test_a_reader_of_mirrored_volumes_has_two_paths_to_each() -> None:
    paths = [(one.subsystem_nqn, one.address, one.volume_ids) for one in configured(MIRRORED, COMPUTE).imports]
    assert paths == [
        (sealed_nqn("small-1", 0), "10.0.1.0", ("dataset-0",)),
        (sealed_nqn("small-1", 1), "10.0.1.0", ("dataset-1",)),
        (sealed_nqn("small-1", 1), "10.0.1.1", ("dataset-1",)),
        (sealed_nqn("small-1", 0), "10.0.1.1", ("dataset-0",)),
    ]


def test_slices_have_different_names_and_the_same_each_time() -> None:
    first, again = (configured(MIRRORED, STORAGE[0]) for _ in range(2))
    assert first == again
    assert len({one.namespace_uuid for one in first.slices}) == len({one.name for one in first.slices}) == 4


def test_volumes_of_one_run_have_different_array_names_however_long_the_runs_is() -> None:
    node = node_row("s0", role="storage", run_id="r" * 63)
    names = [
        one.array_name for one in configure_node(plan((volume(0, (0,)), volume(1, (0,)))), node, [node], {}, 15).volumes
    ]
    assert len(set(names)) == 2
    assert all(len(name) <= 32 for name in names)


def test_a_repeated_launch_asks_for_the_same_places_again() -> None:
    storage = fleet("storage", 3)
    assert missing_indexes(storage, [], 1) == (0, 1, 2)
    assert missing_indexes(storage, [node_row(index=0), node_row(index=1)], 1) == (0, 1, 2)
    assert missing_indexes(storage, [node_row(index=0), node_row(index=2)], 2) == (1,)


@pytest.mark.parametrize(
    ("asked", "devices", "fabric"),
    [
        ("auto", ["mlx5_0", "mlx5_1"], "roce"),
        ("auto", ["mlx5_0", None], "tcp"),
        ("auto", [None, None], "tcp"),
        ("auto", [], "tcp"),
        ("tcp", ["mlx5_0", "mlx5_0"], None),
    ],
)
def test_the_fabric_that_the_job_leaves_open_is_one_for_all_machines(
    asked: str, devices: list[str | None], fabric: str | None
) -> None:
    nodes = [node_row(f"s{number}", role="storage", rdma_device=one) for number, one in enumerate(devices)]
    assert probed_fabric(SPREAD, asked, nodes) == fabric


def test_roce_in_software_is_for_those_who_ask_for_it() -> None:
    asked = SPREAD.model_copy(update={"chosen": SPREAD.chosen.model_copy(update={"fabric": "roce"})})
    assert (configured(asked, COMPUTE).fabric, configured(asked, COMPUTE).soft_roce) == ("roce", True)
    probed = configure_node(SPREAD, COMPUTE, STORAGE, {}, 15, "roce")
    assert (probed.fabric, probed.soft_roce) == ("roce", False)


def test_readers_do_without_a_node_only_while_another_holds_all_of_its_parts() -> None:
    mirrored, one_sided = MIRRORED.chosen.volumes, (*MIRRORED.chosen.volumes, volume(2, (1,)))
    assert [can_do_without(mirrored, lost) for lost in ({0}, {1}, {0, 1}, set[int]())] == [True, True, False, True]
    assert [can_do_without(one_sided, lost) for lost in ({0}, {1})] == [True, False]
    assert not can_do_without(STRIPED.chosen.volumes, {0})
    assert can_do_without((volume(0, (0,), held_by="compute"),), {0})


def test_a_scratch_volume_is_served_to_its_compute_node_alone_by_the_node_that_holds_it() -> None:
    config = configured(LENT, STORAGE[0])
    served = [one for one in config.exports if one.phase == "always"]
    assert {(one.subsystem_nqn, one.allowed_host_nqns) for one in served} == {
        (scratch_nqn("small-1", f"scratch-{index}"), (reader_nqn("small-1", index),)) for index in (0, 2)
    }
    held = {one.namespace_uuid: one.name for one in config.slices if one.share_ppm}
    assert [held[one.namespace_uuid] for one in served] == [
        *("scratch-0-0-0", "scratch-0-0-1", "scratch-2-0-0", "scratch-2-0-1"),
    ]
    assert all(one.phase in ("sealed", "filling") for one in config.exports if one not in served)


def test_no_storage_node_makes_or_fills_a_scratch_volume() -> None:
    assert [one.volume_id for one in configured(LENT, STORAGE[0]).volumes] == ["dataset-0"]


def test_a_compute_node_reaches_its_own_scratch_volume_and_no_other() -> None:
    config = configured(LENT, node_row("c2", index=2))
    (own,) = [one for one in config.volumes if one.kind == "scratch"]
    assert (own.volume_id, own.hydrated_here, len(own.slices)) == ("scratch-2", False, 2)
    (reached,) = [one for one in config.imports if own.volume_id in one.volume_ids]
    assert (reached.node_id, reached.subsystem_nqn) == ("s0", scratch_nqn("small-1", "scratch-2"))
    serving = {one.namespace_uuid for one in configured(LENT, STORAGE[0]).exports if one.phase == "always"}
    assert set(own.slices) <= serving


def test_every_storage_node_keeps_as_much_as_the_one_that_lends_most() -> None:
    configs = [configured(LENT, one) for one in STORAGE]
    assert [one.kept_ppm for one in configs] == [200_000, 200_000]
    assert {one.share_ppm for config in configs for one in config.slices} == {None, 100_000}
    assert configured(SPREAD, STORAGE[0]).kept_ppm == 0
