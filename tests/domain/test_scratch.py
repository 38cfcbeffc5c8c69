"""What compute nodes without SSDs write lies on a storage node wherever the data set leaves room, and outlives them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.calibration import LENT_BYTES_MAX, ROOT_DISK_BYTES
from headrace.domain.demand import capacity_bytes
from headrace.domain.errors import InfeasibleJob
from headrace.domain.plan import OptionPlan, VolumePlan
from headrace.domain.planner import plan
from infra.nodes import ROOT_GIB
from tests.domain.small_world import GB, TB, dataset, diskless, job, machine, world

DISK_GB = 1000
"""Of each of the two disks of a storage node."""


def option(total_bytes: int = 100 * GB, nodes: int = 2, count: int = 1, **changes: Any) -> OptionPlan:
    small = world({diskless("cpu.large", nic_bytes_per_s=100 * GB): 1.0, machine("disk"): 1.0})
    fleet = {"storage": "fleet", "storage_nodes": nodes, "compute": {"instance_type": "cpu.large", "count": count}}
    return plan(job(**(fleet | changes)), dataset(total_bytes, 1_000), *small).chosen


def of_kind(made: OptionPlan, kind: str) -> list[VolumePlan]:
    return [one for one in made.volumes if one.kind == kind]


def test_each_compute_node_without_ssds_has_a_volume_whole_on_one_storage_node() -> None:
    found = of_kind(option(nodes=2, count=3), "scratch")
    assert [(one.volume_id, one.held_by, one.hydrator_node_index, one.member_node_indexes) for one in found] == [
        ("scratch-000", "storage", 0, (0,)),
        ("scratch-001", "storage", 1, (1,)),
        ("scratch-002", "storage", 2, (0,)),
    ]
    assert len({one.capacity_bytes for one in found}) == 1


@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 1800), st.booleans())
def test_what_is_lent_leaves_room_for_the_data_set_on_every_node_and_is_worth_it(
    nodes: int, count: int, data_gb: int, huge: bool
) -> None:
    total = data_gb * GB * nodes
    small = world({diskless("cpu.large", nic_bytes_per_s=100 * GB, memory_bytes=TB): 1.0, machine("disk"): 1.0})
    spec = job(storage="fleet", storage_nodes=nodes, compute={"instance_type": "cpu.large", "count": count})
    try:
        made = plan(spec, dataset(total, 5 if huge else 1_000, total // 5 if huge else None), *small).chosen
    except InfeasibleJob:
        return
    lent = of_kind(made, "scratch")
    held = [sum(one.capacity_bytes for one in lent if index in one.member_node_indexes) for index in range(nodes)]
    kept = [0.0] * nodes
    for volume in of_kind(made, "dataset"):
        for index in volume.member_node_indexes:
            kept[index] += volume.capacity_bytes / len(volume.member_node_indexes)
    assert all(one + other <= 2 * DISK_GB * GB for one, other in zip(held, kept, strict=True))
    assert max(kept) - min(kept) <= 1, "copies and stripes need members of one size"
    assert sum(kept) >= capacity_bytes(total, 5 if huge else 1_000, nodes)
    assert all(ROOT_DISK_BYTES <= one.capacity_bytes <= LENT_BYTES_MAX for one in lent)


def test_nothing_is_rented_for_it() -> None:
    crowded = option(1_700 * GB, nodes=1)
    assert of_kind(crowded, "scratch") == []
    (said,) = [one for one in crowded.reasons if one.startswith("results and checkpoints")]
    assert said.endswith(
        "root disk, for it has no local SSD, and the data set leaves no 161 GB for it on a storage node"
    )


def test_a_share_holds_two_checkpoints_of_its_node_or_is_not_made() -> None:
    checkpoints = {"demand": {"read_bytes_per_s": GB, "checkpoints": {"bytes": 400 * GB, "period_s": 36_000}}}
    assert of_kind(option(100 * GB, nodes=1, count=1, **checkpoints), "scratch") != []
    assert of_kind(option(1_400 * GB, nodes=1, count=1, **checkpoints), "scratch") == []


def test_a_mirrored_run_does_not_hang_on_one_storage_node_for_its_results() -> None:
    made = option(resilience="mirror")
    assert of_kind(made, "scratch") == []
    (said,) = [one for one in made.reasons if one.startswith("results and checkpoints")]
    assert "a mirrored run must not depend on one storage node" in said


def test_the_plan_says_where_results_are_and_who_uploads_them_then() -> None:
    (said,) = [one for one in option().reasons if one.startswith("results and checkpoints")]
    assert "of a storage node's SSDs, which uploads what is left when a compute node is lost" in said


@pytest.mark.parametrize(("memory_bytes", "lends"), [(64 * GB, True), (4 * 10**6, False)])
def test_memory_for_the_queues_of_one_more_connection_is_needed(memory_bytes: int, lends: bool) -> None:
    storage = machine("disk", memory_bytes=memory_bytes)
    small = world({diskless("cpu.large", nic_bytes_per_s=100 * GB): 1.0, storage: 1.0})
    spec = job(storage="fleet", storage_nodes=1, compute={"instance_type": "cpu.large", "count": 1})
    made = plan(spec, dataset(100 * GB, 1_000), *small).chosen
    assert bool(of_kind(made, "scratch")) is lends


def test_a_root_disk_is_as_large_as_the_template_makes_it() -> None:
    assert ROOT_GIB["compute"] * 2**30 == ROOT_DISK_BYTES
