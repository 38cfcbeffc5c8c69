"""Every option says what the next cheaper one would be, and what it lacks."""

from __future__ import annotations

from typing import Any

from headrace.domain.planner import plan
from tests.domain.small_world import CPU, FAST, GB, SMALL, TB, dataset, diskless, job, machine, world


def said(small: Any = SMALL, data: Any = None, **changes: Any) -> str:
    return plan(job(**changes), data or dataset(), *small).chosen.next_cheaper


def test_one_node_less_lacks_what_the_fleet_is_sized_for() -> None:
    text = said(demand={"read_bytes_per_s": 6 * GB})
    assert text.startswith("1 x disk.cheap would save 0.9000 USD/h but not do: 1 x disk.cheap at 3.54 GB/s")
    assert text.endswith("6 GB/s needed")


def test_no_fleet_lacks_what_the_compute_nodes_have_not() -> None:
    assert said() == "no storage fleet would save 0.9000 USD/h but not do: compute nodes have no local SSD"


def test_nothing_is_cheaper_than_the_machines_that_train() -> None:
    assert said(world({machine("cpu.large"): 1.0})).startswith("nothing is cheaper")


def test_a_number_of_nodes_that_the_job_asks_for_is_no_lack() -> None:
    assert said(storage_nodes=7) == "6 x disk.cheap would save 0.9000 USD/h and do; the job asks for 7"


def test_nodes_that_pay_by_staging_sooner_are_said_to() -> None:
    slow = machine("disk.fast", ssd_write_bytes_per_s=GB // 20)
    huge = dataset(12 * TB, 6, 6 * TB)
    reader = diskless("cpu.large", nic_bytes_per_s=100 * GB)
    text = said(world({reader: 50.0, slow: 0.1}), huge, duration_hours=0.1)
    assert "and do, but staging would take longer and cost more" in text


def test_a_mirror_has_no_fewer_than_two_nodes() -> None:
    assert said(world({CPU: 1.0, FAST: 2.0}), resilience="mirror").startswith("no storage fleet would save 4.00 USD/h")
