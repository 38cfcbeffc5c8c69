"""The search ranks what is feasible and says what else would work; test_brute_force.py holds it to be exact."""

from __future__ import annotations

from headrace.domain.planner import plan
from tests.domain.small_world import CHEAP, GB, GPU1, GPU8, TB, dataset, job, refusal, world


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
