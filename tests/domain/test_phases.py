"""Staging takes as long as its slowest part, and estimates bracket the run."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.plan import PhasePlan
from headrace.domain.planner import plan
from tests.domain.small_world import GB, TB, dataset, diskless, job, machine, world


def staging(changes: dict[str, Any], total: int, files: int = 1_000, **disk: Any) -> PhasePlan:
    small = world({diskless("cpu.large"): 1.0, machine("disk", **disk): 1.0})
    catalog, prices = small[0], small[1].model_copy(update={"transfer_out_usd_per_gb": {"eu-west-1": 0.02}})
    made = plan(job(storage="fleet", storage_nodes=2, **changes), dataset(total, files), catalog, prices)
    return next(one for one in made.chosen.phases if one.name == "staging")


def test_each_node_copies_its_share_at_the_rate_of_its_ssds() -> None:
    phase = staging({}, TB)
    assert phase.eta_s == 125.0
    assert "500 GB per node at 4 GB/s, bound by its SSD writes" in phase.because


def test_or_at_the_rate_of_its_nic() -> None:
    phase = staging({}, TB, nic_bytes_per_s=GB)
    assert phase.eta_s == pytest.approx(500 / 0.707, abs=0.1)
    assert "bound by its NIC" in phase.because


def test_or_at_the_rate_of_requests_for_many_small_objects() -> None:
    phase = staging({}, GB, files=1_100_000)
    assert phase.eta_s == 200.0
    assert "1,100,000 objects at 5,500 GET/s" in phase.because


def test_or_at_the_rate_of_requests_that_few_cpus_send() -> None:
    assert staging({}, GB, files=1_100_000, vcpus=1).eta_s == 275.0


def test_a_mirror_is_copied_twice() -> None:
    assert staging({"resilience": "mirror"}, TB).eta_s == 250.0


def test_another_region_gives_half_of_a_large_nic_and_5_gbit_to_a_small_one() -> None:
    inputs = [
        {"source": "s3://datasets/a/", "region": "us-east-1"},
        {"name": "b", "source": "s3://datasets/b/", "region": "eu-west-1"},
    ]
    assert staging({"data": inputs}, TB, vcpus=32, nic_bytes_per_s=2 * GB).eta_s == 500.0
    assert staging({"data": inputs}, TB, vcpus=8).eta_s == 800.0


def test_every_compute_node_copies_everything_to_its_own_disks_while_it_bills() -> None:
    own = world({machine("cpu.large"): 3.0})
    made = plan(job(compute={"instance_type": "cpu.large", "count": 2}), dataset(TB), *own)
    phase = next(one for one in made.chosen.phases if one.name == "staging")
    assert (phase.eta_s, phase.usd_per_hour) == (250.0, 6.0)


def test_the_dear_end_covers_every_phase_at_its_slowest() -> None:
    small = world({diskless("cpu.large"): 1.0, machine("disk"): 1.0})
    made = plan(job(storage_nodes=1, duration_hours=10), dataset(TB), *small).chosen
    slow = 400 * 1.0 + 250 * 2 * 1.0 + 400 * 2.0 + 36_000 * 1.1 * 2.0 + 300 * 2.0
    assert made.usd_high == pytest.approx(slow / 3600, abs=1e-4)
