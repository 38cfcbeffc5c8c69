"""What a kind of storage can do is bounded by measured limits, and each refusal has its figures."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.planner import plan
from tests.domain.small_world import (
    CPU,
    FAST,
    GB,
    SMALL,
    TB,
    dataset,
    diskless,
    job,
    machine,
    refusal,
    world,
)


def test_own_disks_that_are_too_small_too_slow_or_unmeasured_are_left_alone() -> None:
    spec = job(storage="local", demand={"read_bytes_per_s": 9 * GB})
    own = world({machine("cpu.large"): 1.0})
    assert "SSDs read less than it needs (1, such as cpu.large: 8 GB/s of 9 GB/s)" in refusal(spec, own)
    assert "SSDs hold less than the data set (1, such as cpu.large: 2 TB of 2.2 TB)" in refusal(
        spec, own, total_bytes=2 * TB
    )
    unknown = world({machine("cpu.large", ssd_read_bytes_per_s=0, ssd_write_bytes_per_s=0): 1.0, FAST: 5.0})
    assert plan(job(), dataset(), *unknown).chosen.storage == "fleet"


def test_unmeasured_disks_are_used_when_the_job_insists_and_the_plan_says_so() -> None:
    unknown = machine("cpu.large", ssd_read_bytes_per_s=0, ssd_write_bytes_per_s=0, ssd_basis="none")
    made = plan(job(storage="local"), dataset(), *world({unknown: 1.0}))
    assert any("measured nowhere; the job asks for them all the same" in one for one in made.assumptions)


def test_many_small_objects_are_beyond_what_one_prefix_of_s3_gives() -> None:
    said = refusal(job(storage="direct", demand={"read_bytes_per_s": GB}), files=10**6)
    assert "one S3 prefix gives fewer GET/s than are needed (1, such as cpu.large: 5,500 of 10,000)" in said


def test_compute_machines_whose_nic_is_too_slow_are_refused_with_the_figures() -> None:
    said = refusal(job(demand={"read_bytes_per_s": 8 * GB}))
    assert "NIC brings in less than it needs (1, such as cpu.large: 7.07 GB/s of 8 GB/s)" in said


def test_checkpoints_must_fit_and_be_written_in_their_period() -> None:
    slow = job(demand={"checkpoints": {"bytes": 125 * 10**6 * 100, "period_s": 50}})
    assert "writes a checkpoint slower than they come (1, such as cpu.large: 125 MB/s of 250 MB/s)" in refusal(slow)
    large = job(demand={"checkpoints": {"bytes": 2 * TB, "period_s": 10**6}})
    assert "SSDs hold fewer than two checkpoints" in refusal(large, world({machine("cpu.large"): 1.0}))


def test_too_few_asked_for_nodes_are_refused() -> None:
    said = refusal(
        job(storage_nodes=1, demand={"read_bytes_per_s": 10 * GB}),
        small=world({diskless("cpu.large", nic_bytes_per_s=90 * GB): 1.0, FAST: 1.0}),
    )
    assert "storage: 1 nodes serve less than the job reads" in said
    assert "another number of storage_nodes" in said


def test_one_huge_file_is_striped_over_all_nodes() -> None:
    spec = job(storage_nodes=4)
    made = plan(spec, dataset(TB, files=2, largest_bytes=900 * GB), *SMALL)
    assert [(one.shape, one.member_node_indexes) for one in made.dataset_volumes] == [("striped", (0, 1, 2, 3))] * 2
    assert [one.hydrator_node_index for one in made.dataset_volumes] == [0, 2]
    assert any("striped over all nodes: the largest file has 900 GB" in one for one in made.chosen.reasons)


def test_enough_nodes_are_taken_for_flows_that_carry_5_gbit_each() -> None:
    single = machine("disk.single", vcpus=1)
    made = plan(job(demand={"read_bytes_per_s": 3 * GB}), dataset(), *world({CPU: 1.0, single: 1.0}))
    assert made.chosen.fleets[0].count == 5
    assert made.chosen.limit.name == "fabric connections"


@pytest.mark.parametrize(
    "facts", [{"current": False}, {"bare_metal": True}, {"ssd_read_bytes_per_s": 0}, {"disk_kind": "hdd"}]
)
def test_types_that_make_no_storage_node_are_left_alone_however_cheap(facts: dict[str, Any]) -> None:
    made = plan(job(), dataset(), *world({CPU: 1.0, machine("disk.odd", **facts): 0.01, FAST: 2.0}))
    assert made.chosen.fleets[0].instance_type == "disk.fast"
    assert any(one.example == "disk.odd" for one in made.rejected)


def test_reads_that_are_only_assumed_are_said_to_be_more_than_s3_gives() -> None:
    made = plan(job(storage="direct"), dataset(files=10**8), *SMALL)
    assert any("S3 gives fewer requests than the assumed reads take" in one for one in made.assumptions)


def test_slow_own_disks_are_used_for_an_assumed_demand_only_when_the_job_insists() -> None:
    slow = world({machine("cpu.large", ssd_read_bytes_per_s=10**7): 1.0, FAST: 2.0})
    assert plan(job(), dataset(), *slow).chosen.storage == "fleet"
    made = plan(job(storage="local"), dataset(), *slow)
    assert any("SSDs read less than is assumed" in one for one in made.assumptions)
