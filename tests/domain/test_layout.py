"""Volumes cover every SSD once, XFS takes their geometry, and connections have the queues they need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.layout import geometry_faults
from headrace.domain.plan import OptionPlan, VolumePlan
from headrace.domain.planner import plan
from tests.domain.small_world import GB, TB, dataset, diskless, job, machine, world

KIB = 1024


def option(
    changes: dict[str, Any], total: int = 100 * GB, files: int = 1_000, largest: int | None = None
) -> OptionPlan:
    small = world(
        {diskless("cpu.large", nic_bytes_per_s=100 * GB): 1.0, machine("own.large"): 1.5, machine("disk"): 1.0}
    )
    return plan(job(**changes), dataset(total, files, largest), *small).chosen


def on_storage(made: OptionPlan) -> list[VolumePlan]:
    return [one for one in made.volumes if one.held_by == "storage" and one.kind == "dataset"]


def lent(made: OptionPlan) -> list[VolumePlan]:
    return [one for one in made.volumes if one.held_by == "storage" and one.kind == "scratch"]


@given(st.integers(2, 40), st.booleans(), st.booleans())
def test_slices_fit_the_disks_of_each_storage_node(nodes: int, mirrored: bool, huge: bool) -> None:
    changes = {"storage": "fleet", "storage_nodes": nodes, "resilience": "mirror" if mirrored else "none"}
    made = option(changes, TB, 5, 900 * GB if huge else None)
    held = [0.0] * nodes
    for volume in on_storage(made):
        assert len(volume.mirror_node_indexes) == (len(volume.member_node_indexes) if mirrored else 0)
        for node in (*volume.member_node_indexes, *volume.mirror_node_indexes):
            held[node] += volume.capacity_bytes / len(volume.member_node_indexes)
    for volume in lent(made):
        held = [one + volume.capacity_bytes for one in held]
    assert all(2 * TB * 0.999 <= one <= 2 * TB + 1 for one in held)


@given(st.integers(2, 40), st.booleans())
def test_a_mirror_is_never_on_the_node_whose_copy_it_is(nodes: int, huge: bool) -> None:
    changes = {"storage": "fleet", "storage_nodes": nodes, "resilience": "mirror"}
    for volume in on_storage(option(changes, TB, 5, 900 * GB if huge else None)):
        pairs = zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=True)
        assert all(member != mirror for member, mirror in pairs)


def test_volumes_are_named_in_the_order_that_assignments_use() -> None:
    made = option({"storage": "fleet", "storage_nodes": 3})
    assert [one.volume_id for one in on_storage(made)] == ["dataset-000", "dataset-001", "dataset-002"]


def test_scratch_is_on_own_disks_where_there_are_any() -> None:
    assert [one.kind for one in option({"storage": "local", "compute": {"instance_type": "own.large"}}).volumes] == [
        "dataset",
        "scratch",
    ]
    with_disks = option({"storage": "fleet", "compute": {"instance_type": "own.large", "count": 2}})
    scratch = [one for one in with_disks.volumes if one.kind == "scratch"]
    assert [(one.volume_id, one.capacity_bytes) for one in scratch] == [
        ("scratch-000", 2 * TB),
        ("scratch-001", 2 * TB),
    ]


def test_data_set_and_scratch_share_own_disks_without_overlap() -> None:
    made = option({"storage": "local", "compute": {"instance_type": "own.large"}})
    assert sum(one.capacity_bytes for one in made.volumes) == 2 * TB


@pytest.mark.parametrize(
    ("nodes", "reads", "queues"),
    [(1, 10**8, 1), (1, GB // 2, 4), (1, GB, 7), (2, GB, 4), (8, GB, 1), (1, 5 * GB, 16)],
)
def test_queues_carry_four_times_the_even_share_up_to_the_slower_nic(nodes: int, reads: int, queues: int) -> None:
    made = option({"storage": "fleet", "storage_nodes": nodes, "demand": {"read_bytes_per_s": reads}})
    assert made.queues_per_connection == queues


@pytest.mark.parametrize(("reader_vcpus", "server_vcpus"), [(3, 64), (64, 3)])
def test_there_are_no_more_queues_than_vcpus_on_either_side(reader_vcpus: int, server_vcpus: int) -> None:
    small = world({diskless("cpu.large", vcpus=reader_vcpus): 1.0, machine("disk", vcpus=server_vcpus): 1.0})
    made = plan(job(storage="fleet", demand={"read_bytes_per_s": GB}), dataset(), *small).chosen
    assert made.queues_per_connection == 3


def test_ena_express_on_both_ends_needs_fewer_queues() -> None:
    fast = {"nic_bytes_per_s": 25 * GB, "ena_express": True}
    small = world({diskless("cpu.large", **fast): 1.0, machine("disk", **fast): 1.0})
    made = plan(job(storage="fleet", demand={"read_bytes_per_s": 5 * GB}), dataset(), *small).chosen
    assert made.queues_per_connection == 7


def test_nothing_is_connected_without_a_fleet() -> None:
    assert option({"storage": "local", "compute": {"instance_type": "own.large"}}).queues_per_connection == 0


@given(st.integers(1, 4096))
def test_every_planned_geometry_is_legal(slices: int) -> None:
    assert geometry_faults(128 * KIB, slices) == ()


@pytest.mark.parametrize(
    ("unit", "slices", "said"),
    [
        (512 * KIB, 2, "log stripe is cut"),
        (2 * KIB, 2, "below the block"),
        (10_000, 2, "no multiple"),
        (128 * KIB, 0, "at least one slice"),
        (256 * KIB, 2**23, "overflows"),
    ],
)
def test_a_geometry_that_mkfs_would_refuse_or_change_is_named(unit: int, slices: int, said: str) -> None:
    assert any(said in fault for fault in geometry_faults(unit, slices))
