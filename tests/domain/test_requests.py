"""The single reads that a loader issues bound what disks give, and how long one takes bounds what may hold the data."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.planner import plan
from headrace.domain.requests import request_bytes
from tests.domain.small_world import CPU, FAST, GB, SMALL, dataset, job, machine, refusal, world

READ_AHEAD = 131_072


@pytest.mark.parametrize(
    ("demand", "file_bytes", "expected"),
    [
        ({"read_bytes_per_s": GB}, 10**9, READ_AHEAD),
        ({"read_bytes_per_s": GB}, 3_000, 3_000),
        ({"samples_per_s": 10, "sample_bytes": 50_000}, 10**9, 50_000),
        ({"samples_per_s": 10, "sample_bytes": 10**8}, 10**9, READ_AHEAD),
        ({"read_bytes_per_s": GB, "request_bytes": 4_096}, 10**9, 4_096),
        ({}, 100, READ_AHEAD),
    ],
)
def test_a_read_is_the_read_ahead_or_what_is_smaller(demand: dict[str, Any], file_bytes: int, expected: int) -> None:
    assert request_bytes(job(demand=demand), dataset(1_000 * file_bytes, 1_000)) == expected


def test_small_reads_take_more_nodes_where_operations_bind() -> None:
    slow = machine("disk.slow", ssd_read_iops=100_000, nic_bytes_per_s=100 * GB)
    made = plan(job(demand={"read_bytes_per_s": GB, "request_bytes": 4_096}), dataset(), *world({CPU: 1.0, slow: 1.0}))
    assert (made.demand.reads_per_s, made.demand.read_request_bytes) == (244_141, 4_096)
    assert (made.chosen.limit.name, made.chosen.limit.unit, made.chosen.fleets[0].count) == (
        "SSD operations",
        "IOPS",
        3,
    )
    assert "300,000 reads/s; 244,141 needed, 4.1 kB each" in made.chosen.limit.because


def test_disks_whose_operations_are_not_measured_are_bound_by_their_bytes_alone() -> None:
    made = plan(job(demand={"read_bytes_per_s": GB, "request_bytes": 512}), dataset(), *SMALL)
    assert made.chosen.fleets[0].count == 1


def test_own_disks_must_do_the_operations_too() -> None:
    own = machine("cpu.large", ssd_read_iops=10_000)
    spec = job(demand={"read_bytes_per_s": GB, "request_bytes": 4_096}, storage="local")
    assert "SSDs read less than it needs (1, such as cpu.large: 41 MB/s of 1 GB/s)" in refusal(spec, world({own: 1.0}))


@pytest.mark.parametrize(("bound_ms", "kind"), [(0.5, "local"), (1.0, "fleet")])
def test_storage_that_answers_later_than_the_job_allows_is_passed_over(bound_ms: float, kind: str) -> None:
    own = machine("cpu.large", ssd_write_bytes_per_s=GB // 100)
    small = world({own: 5.0, FAST: 0.1})
    made = plan(job(demand={"read_bytes_per_s": GB, "read_latency_ms": bound_ms}), dataset(), *small)
    assert made.chosen.storage == kind
    assert any(f"ms from {kind} storage" in one for one in made.assumptions)


def test_a_bound_that_nothing_meets_is_refused_with_both_figures() -> None:
    said = refusal(job(demand={"read_bytes_per_s": GB, "read_latency_ms": 0.1}))
    assert "fleet: one read takes 0.6 ms, longer than demand.read_latency_ms 0.1" in said
    assert "local: one read takes 0.258 ms" in said


def test_s3_itself_is_refused_where_reads_must_be_quick() -> None:
    said = refusal(job(storage="direct", demand={"read_bytes_per_s": 10**6, "read_latency_ms": 50}))
    assert "direct: one read takes 200 ms, longer than demand.read_latency_ms 50" in said
