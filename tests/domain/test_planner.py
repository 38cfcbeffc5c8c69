"""The plan is the cheapest feasible one, says why, and says no in words that help."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.planner import plan
from tests.domain.small_world import (
    CHEAP,
    CPU,
    FAST,
    GB,
    GPU1,
    GPU8,
    SMALL,
    TB,
    dataset,
    diskless,
    job,
    machine,
    refusal,
    world,
)

HOURS = 3600.0


def test_the_same_arguments_give_the_same_plan() -> None:
    spec = job(demand={"read_bytes_per_s": 6 * GB})
    assert plan(spec, dataset(), *SMALL) == plan(spec, dataset(), *SMALL)


def test_the_cheapest_storage_type_that_serves_enough_is_chosen() -> None:
    made = plan(job(demand={"read_bytes_per_s": 6 * GB}), dataset(), *SMALL)
    storage = made.fleet("storage")
    assert storage is not None
    assert (storage.instance_type, storage.count) == ("disk.cheap", 2)
    assert made.chosen.limit.name == "storage NIC"
    assert made.chosen.limit.offered >= made.chosen.limit.needed == 6 * GB


def test_a_dearer_type_is_chosen_when_fewer_of_it_are_cheaper() -> None:
    small = world({CPU: 1.0, CHEAP: 1.1, FAST: 2.0})
    storage = plan(job(demand={"read_bytes_per_s": 7 * GB}), dataset(), *small).fleet("storage")
    assert storage is not None
    assert (storage.instance_type, storage.count) == ("disk.fast", 1)


def test_disks_bound_what_a_node_serves_when_they_are_slower_than_its_nic() -> None:
    slow = machine("disk.slow", ssd_read_bytes_per_s=2 * GB)
    made = plan(job(demand={"read_bytes_per_s": 5 * GB}), dataset(), *world({CPU: 1.0, slow: 1.0}))
    assert (made.chosen.limit.name, made.chosen.fleets[0].count) == ("SSD read", 3)


def test_capacity_bounds_a_fleet_that_holds_much_and_reads_little() -> None:
    made = plan(job(demand={"read_bytes_per_s": GB}), dataset(20 * TB), *SMALL)
    storage = made.fleet("storage")
    assert storage is not None
    assert made.chosen.limit.name == "SSD capacity"
    assert storage.count * storage.disk_count * storage.disk_bytes >= 22 * TB


def test_the_number_of_storage_nodes_that_the_job_asks_for_is_kept() -> None:
    made = plan(job(storage_nodes=7), dataset(), *SMALL)
    assert made.chosen.fleets[0].count == 7
    assert made.chosen.limit.name == "storage_nodes"
    assert len(made.dataset_volumes) == 7


def test_a_mirror_doubles_what_is_held_and_needs_two_nodes() -> None:
    alone = plan(job(), dataset(), *SMALL)
    mirrored = plan(job(resilience="mirror"), dataset(), *SMALL)
    assert mirrored.demand.capacity_bytes == 2 * alone.demand.capacity_bytes
    assert [one.mirror_node_indexes for one in mirrored.dataset_volumes] == [(1,), (0,)]


def test_own_disks_are_used_when_they_are_enough_and_cheaper() -> None:
    own = machine("cpu.large")
    made = plan(job(), dataset(), *world({own: 1.0, FAST: 2.0}))
    assert made.chosen.storage == "local"
    assert made.fleet("storage") is None
    assert [(one.kind, one.held_by) for one in made.chosen.volumes] == [("dataset", "compute"), ("scratch", "compute")]
    assert made.alternatives[0].storage == "fleet"


def test_each_compute_node_holds_the_whole_data_set_on_local_storage() -> None:
    own = machine("cpu.large")
    made = plan(job(compute={"instance_type": "cpu.large", "count": 3}), dataset(), *world({own: 1.0}))
    assert len(made.dataset_volumes) == 3
    assert all(one.capacity_bytes >= 100 * GB for one in made.dataset_volumes)


def test_s3_itself_is_read_only_when_asked_for() -> None:
    assert plan(job(), dataset(), *SMALL).chosen.storage == "fleet"
    made = plan(job(storage="direct"), dataset(), *SMALL)
    assert (made.chosen.storage, made.chosen.fabric, made.chosen.volumes) == ("direct", "none", ())
    assert [phase.name for phase in made.chosen.phases] == ["compute", "training", "ending"]


def test_no_demand_is_never_a_reason_to_refuse() -> None:
    slow = diskless("cpu.large", nic_bytes_per_s=10**8)
    made = plan(job(), dataset(), *world({slow: 1.0, CHEAP: 1.0}))
    assert made.demand.read_bytes_per_s <= 0.707 * 10**8
    assert any("states no demand" in one for one in made.assumptions)


def test_accelerators_come_from_the_cheapest_type_and_are_rounded_up_in_words() -> None:
    made = plan(job(compute={"accelerator": "h100", "count": 9}), dataset(), *world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}))
    compute = made.fleet("compute")
    assert compute is not None
    assert (compute.instance_type, compute.count, compute.accelerators_each) == ("gpu.8x", 2, 8)
    assert "16 h100 in all, 7 more than asked" in made.chosen.reasons[0]


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        ({"accelerator": "h1000"}, "close: h100"),
        ({"accelerator": "zzzz"}, "known there: h100"),
        ({"instance_type": "gpu.8y"}, "close: gpu.8x, gpu.1x"),
        ({"instance_type": "unpriced.large"}, "no price known in us-east-1"),
    ],
)
def test_an_unknown_name_gets_the_close_ones(compute: dict[str, str], said: str) -> None:
    catalog, prices = world({GPU8: 8.0, GPU1: 3.0})
    types = (*catalog.types, machine("unpriced.large"))
    assert said in refusal(job(compute=compute), (catalog.model_copy(update={"types": types}), prices))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {"source": "s3://datasets/a/", "staging": "lazy"}}, "write staging: copy"),
        ({"environment": {"image": "team/image"}}, "environment.image is not available yet"),
        ({"environment": {"secrets": {"KEY": "arn"}}}, "environment.secrets is not available yet"),
    ],
)
def test_what_is_not_there_yet_is_refused_with_what_to_use(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(job(**changes))


def test_soft_roce_is_said_when_the_job_forces_roce() -> None:
    made = plan(job(fabric="roce"), dataset(), *SMALL)
    assert made.chosen.fabric == "roce"
    assert any("soft-RoCE" in one for one in made.chosen.reasons)


def test_phases_bill_what_runs_while_they_last() -> None:
    made = plan(job(storage_nodes=2, duration_hours=2), dataset(), *SMALL)
    rates = {phase.name: phase.usd_per_hour for phase in made.chosen.phases}
    assert rates == {"storage": 1.8, "staging": 1.8, "compute": 2.8, "training": 2.8, "ending": 2.8}
    low = sum(phase.eta_s * phase.usd_per_hour for phase in made.chosen.phases) / HOURS
    assert made.chosen.usd_low == pytest.approx(low, abs=1e-3)
    assert made.chosen.usd_low < made.chosen.usd_high


def test_a_run_that_would_be_ended_before_it_is_done_is_said_to_be() -> None:
    made = plan(job(duration_hours=0.01, max_hours=0.02), dataset(), *SMALL)
    assert any("raise max_hours" in one for one in made.assumptions)


def test_every_type_is_chosen_shown_or_rejected(catalog: Catalog, prices: PriceList) -> None:
    made = plan(job(compute={"instance_type": "c7i.large"}, storage="fleet"), dataset(), catalog, prices)
    shown = 1 + len(made.alternatives)
    assert shown + sum(one.candidates for one in made.rejected) == len(catalog.types)


def test_hard_disks_and_unmeasured_disks_are_never_chosen(catalog: Catalog, prices: PriceList) -> None:
    made = plan(job(compute={"instance_type": "c7i.large"}, storage="fleet"), dataset(), catalog, prices)
    reasons = {one.reason: one.example for one in made.rejected}
    assert reasons["storage: its local disks are HDDs, too slow for random reads"].startswith("d3")
    assert "storage: the rate of its SSDs is measured nowhere" in reasons


def test_the_largest_public_run_is_fed_for_72_percent_of_its_storage_bill(catalog: Catalog, prices: PriceList) -> None:
    spec = job(
        compute={"accelerator": "h100", "count": 411},
        demand={"read_bytes_per_s": 2_753_000_000},
        resilience="mirror",
        storage="fleet",
    )
    storage = plan(spec, dataset(210_900 * GB, 1_438_500), catalog, prices).fleet("storage")
    assert storage is not None
    assert storage.count <= 256
    assert storage.count * storage.usd_per_hour_each <= 0.72 * 128 * 10.848
