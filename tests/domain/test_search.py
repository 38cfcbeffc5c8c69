"""The search is exact: no type and count that it knows is cheaper than what it finds."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.catalog import MachineType
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from tests.domain.small_world import (
    CHEAP,
    GB,
    GPU1,
    GPU8,
    TB,
    dataset,
    diskless,
    job,
    machine,
    refusal,
    world,
)


def brute_force(spec: JobSpec, given_dataset: Any, priced: dict[MachineType, float]) -> float:
    """Return the least USD per hour of storage, trying every type and count, by the rules alone."""
    best = math.inf
    for one, usd in priced.items():
        for nodes in range(1, 257):
            rate = nodes * math.floor(min(one.ssd_read_bytes_per_s, 0.707 * one.nic_bytes_per_s))
            stored = given_dataset.bytes + 4_608 * given_dataset.files
            fullest = math.ceil((stored + (given_dataset.largest_bytes + 4_608) * (nodes - 1)) / nodes)
            held = math.ceil(fullest * 1.10) + 300 * 10**6
            queues = min(one.vcpus, 16) * 5 * 10**9 // 8
            fits = (
                nodes * queues >= (spec.demand.read_bytes_per_s or 0)
                and rate >= (spec.demand.read_bytes_per_s or 0)
                and held <= one.disk_count * one.disk_bytes
            )
            if fits:
                best = min(best, nodes * usd)
    return best


SHAPES = st.builds(
    lambda nic, read, disks, size: (nic * GB, read * GB, disks, size * TB),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(1, 8),
)


@given(
    st.lists(st.tuples(SHAPES, st.integers(1, 400)), min_size=1, max_size=6),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 5_000),
)
def test_no_type_and_count_is_cheaper_by_the_hour_than_the_chosen(
    shapes: list[tuple[tuple[int, int, int, int], int]], reads: int, terabytes: int, files: int
) -> None:
    priced = {
        machine(
            f"t{n}.x",
            nic_bytes_per_s=s[0],
            ssd_read_bytes_per_s=s[1],
            disk_count=s[2],
            disk_bytes=s[3],
            ssd_write_bytes_per_s=10**15,
        ): cents / 100
        for n, (s, cents) in enumerate(shapes)
    }
    reader = diskless("cpu.large", nic_bytes_per_s=100 * GB)
    spec = job(demand={"read_bytes_per_s": reads * GB}, duration_hours=1000, storage="fleet")
    data = dataset(terabytes * TB, max(files, terabytes * 1024))
    best = brute_force(spec, data, priced)
    try:
        made: Plan | None = plan(spec, data, *world({reader: 1.0, **priced}))
    except InfeasibleJob:
        made = None
    if made is None:
        assert best == math.inf
    else:
        storage = made.chosen.fleets[0]
        assert storage.count * storage.usd_per_hour_each <= best * 1.02


def test_a_named_type_that_cannot_be_fed_gets_the_machines_that_can() -> None:
    spec = job(compute={"instance_type": "gpu.8x"}, demand={"read_bytes_per_s": 16 * GB})
    said = refusal(spec, world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}), total_bytes=3 * TB)
    assert "Try accelerator: h100 with count: 8, as 8 x gpu.1x can be fed" in said


def test_at_the_same_price_fewer_machines_are_chosen() -> None:
    made = plan(job(compute={"accelerator": "h100", "count": 8}), dataset(), *world({GPU8: 8.0, GPU1: 1.0, CHEAP: 0.5}))
    assert made.chosen.fleets[-1].instance_type == "gpu.8x"


def test_a_type_whose_nic_cannot_feed_its_accelerators_is_passed_over() -> None:
    spec = job(compute={"accelerator": "h100", "count": 8}, demand={"read_bytes_per_s": 2 * GB})
    made = plan(spec, dataset(3 * TB), *world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}))
    assert made.chosen.fleets[-1].instance_type == "gpu.1x"
    assert any("NIC brings in less" in one.reason and "gpu.8x" in one.example for one in made.rejected)
