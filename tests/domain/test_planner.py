"""The plan is the cheapest feasible one, says why, and says no in words that help."""

from __future__ import annotations

import math
from typing import Any

import pytest
from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.small_world import GB, TB, dataset, diskless, job, machine, world

CPU = diskless("cpu.large")
CHEAP, FAST = machine("disk.cheap", nic_bytes_per_s=5 * GB), machine("disk.fast")
SMALL = world({CPU: 1.0, CHEAP: 0.9, FAST: 2.0})
HOURS = 3600.0


def refusal(spec: JobSpec, small: tuple[Catalog, PriceList] = SMALL, **data: Any) -> str:
    with pytest.raises(InfeasibleJob, match=r".*") as found:
        plan(spec, dataset(**data), *small)
    return str(found.value)


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


def test_too_few_asked_for_nodes_are_refused() -> None:
    said = refusal(
        job(storage_nodes=1, demand={"read_bytes_per_s": 10 * GB}),
        small=world({diskless("cpu.large", nic_bytes_per_s=90 * GB): 1.0, FAST: 1.0}),
    )
    assert "storage: 1 nodes serve less than the job reads" in said
    assert "another number of storage_nodes" in said


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


def test_s3_itself_is_read_only_when_asked_for() -> None:
    assert plan(job(), dataset(), *SMALL).chosen.storage == "fleet"
    made = plan(job(storage="direct"), dataset(), *SMALL)
    assert (made.chosen.storage, made.chosen.fabric, made.chosen.volumes) == ("direct", "none", ())
    assert [phase.name for phase in made.chosen.phases] == ["compute", "training", "ending"]


def test_many_small_objects_are_beyond_what_one_prefix_of_s3_gives() -> None:
    said = refusal(job(storage="direct", demand={"read_bytes_per_s": GB}), files=10**6)
    assert "one S3 prefix gives fewer GET/s than are needed (1, such as cpu.large: 5,500 of 10,000)" in said


def test_compute_machines_whose_nic_is_too_slow_are_refused_with_the_figures() -> None:
    said = refusal(job(demand={"read_bytes_per_s": 8 * GB}))
    assert "NIC brings in less than it needs (1, such as cpu.large: 7.07 GB/s of 8 GB/s)" in said


def test_no_demand_is_never_a_reason_to_refuse() -> None:
    slow = diskless("cpu.large", nic_bytes_per_s=10**8)
    made = plan(job(), dataset(), *world({slow: 1.0, CHEAP: 1.0}))
    assert made.demand.read_bytes_per_s <= 0.707 * 10**8
    assert any("states no demand" in one for one in made.assumptions)


GPU8, GPU1 = (
    machine("gpu.8x", accelerator="h100", accelerators=8),
    machine("gpu.1x", accelerator="h100", accelerators=1),
)


def test_accelerators_come_from_the_cheapest_type_and_are_rounded_up_in_words() -> None:
    made = plan(job(compute={"accelerator": "h100", "count": 9}), dataset(), *world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}))
    compute = made.fleet("compute")
    assert compute is not None
    assert (compute.instance_type, compute.count, compute.accelerators_each) == ("gpu.8x", 2, 8)
    assert "16 h100 in all, 7 more than asked" in made.chosen.reasons[0]


def test_at_the_same_price_fewer_machines_are_chosen() -> None:
    made = plan(job(compute={"accelerator": "h100", "count": 8}), dataset(), *world({GPU8: 8.0, GPU1: 1.0, CHEAP: 0.5}))
    assert made.chosen.fleets[-1].instance_type == "gpu.8x"


def test_a_type_whose_nic_cannot_feed_its_accelerators_is_passed_over() -> None:
    spec = job(compute={"accelerator": "h100", "count": 8}, demand={"read_bytes_per_s": 2 * GB})
    made = plan(spec, dataset(3 * TB), *world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}))
    assert made.chosen.fleets[-1].instance_type == "gpu.1x"
    assert any("NIC brings in less" in one.reason and "gpu.8x" in one.example for one in made.rejected)


def test_a_named_type_that_cannot_be_fed_gets_the_machines_that_can() -> None:
    spec = job(compute={"instance_type": "gpu.8x"}, demand={"read_bytes_per_s": 16 * GB})
    said = refusal(spec, world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}), total_bytes=3 * TB)
    assert "Try accelerator: h100 with count: 8, as 8 x gpu.1x can be fed" in said


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


def test_spot_machines_are_priced_by_their_saving_with_its_age_and_the_list_price_as_the_dear_end() -> None:
    spec = job(compute={"instance_type": "cpu.large", "capacity": "spot"})
    catalog, prices = world({CPU: 10.0, CHEAP: 0.5}, {"cpu.large": 60})
    made = plan(spec, dataset(), catalog, prices)
    assert made.chosen.fleets[-1].usd_per_hour_each == 4.0
    assert made.chosen.usd_high > 2 * made.chosen.usd_low
    assert any("2025-06-28" in one for one in made.assumptions)


def test_storage_is_never_spot() -> None:
    made = plan(job(compute={"instance_type": "cpu.large", "capacity": "spot"}), dataset(), *SMALL)
    assert [one.market for one in made.chosen.fleets] == ["on-demand", "spot"]


def test_only_types_with_the_same_layout_stand_in_for_the_chosen_one() -> None:
    twins = {machine(f"twin.{n}", nic_bytes_per_s=5 * GB): 1.0 + n for n in range(7)}
    others = {
        machine("other.disks", disk_count=4): 1.0,
        machine("other.arch", arch="arm64"): 1.0,
        machine("other.small", disk_bytes=TB // 2): 1.0,
        machine("other.slow", ssd_read_bytes_per_s=GB): 1.0,
    }
    made = plan(job(demand={"read_bytes_per_s": 3 * GB}), dataset(), *world({CPU: 1.0, CHEAP: 0.5, **twins, **others}))
    assert made.chosen.fleets[0].instance_type == "disk.cheap"
    assert made.chosen.fleets[0].fallback_types == ("twin.0", "twin.1", "twin.2", "twin.3", "twin.4")


def test_a_named_compute_type_has_no_stand_in() -> None:
    made = plan(job(), dataset(), *world({CPU: 1.0, diskless("cpu.twin"): 1.0, CHEAP: 1.0}))
    assert made.chosen.fleets[-1].fallback_types == ()


def test_one_huge_file_is_striped_over_all_nodes() -> None:
    spec = job(storage_nodes=4)
    made = plan(spec, dataset(TB, files=2, largest_bytes=900 * GB), *SMALL)
    assert [(one.shape, one.member_node_indexes) for one in made.dataset_volumes] == [("striped", (0, 1, 2, 3))] * 2
    assert [one.hydrator_node_index for one in made.dataset_volumes] == [0, 2]
    assert any("striped over all nodes: the largest file has 900 GB" in one for one in made.chosen.reasons)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {"source": "s3://datasets/a/", "staging": "lazy"}}, "write staging: copy"),
        ({"environment": {"image": "team/image"}}, "environment.image is not available yet"),
    ],
)
def test_what_is_not_there_yet_is_refused_with_what_to_use(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(job(**changes))


def test_soft_roce_is_said_when_the_job_forces_roce() -> None:
    made = plan(job(fabric="roce"), dataset(), *SMALL)
    assert made.chosen.fabric == "roce"
    assert any("soft-RoCE" in one for one in made.chosen.reasons)


def test_checkpoints_must_fit_and_be_written_in_their_period() -> None:
    slow = job(demand={"checkpoints": {"bytes": 125 * 10**6 * 100, "period_s": 50}})
    assert "writes a checkpoint slower than they come (1, such as cpu.large: 125 MB/s of 250 MB/s)" in refusal(slow)
    large = job(demand={"checkpoints": {"bytes": 2 * TB, "period_s": 10**6}})
    assert "SSDs hold fewer than two checkpoints" in refusal(large, world({machine("cpu.large"): 1.0}))


def test_a_budget_that_is_too_small_is_refused_with_what_fits() -> None:
    spec = job(compute={"instance_type": "cpu.large", "count": 10}, duration_hours=10, budget_usd=50)
    said = refusal(spec)
    assert "budget_usd is 50.00 USD; the cheapest plan, 10 x cpu.large and 1 x disk.cheap for 10 h" in said
    hours = float(said.partition("duration_hours: ")[2].split()[0])
    count = int(said.partition("compute.count: ")[2].split()[0])
    assert plan(spec.model_copy(update={"duration_hours": hours}), dataset(), *SMALL).chosen.usd_high <= 50
    assert plan(
        spec.model_copy(update={"compute": spec.compute.model_copy(update={"count": count})}), dataset(), *SMALL
    )


def test_a_budget_below_any_plan_says_that_nothing_fits() -> None:
    assert "What fits: nothing like it" in refusal(job(budget_usd=0.001))


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


def brute_force(spec: JobSpec, given_dataset: Any, priced: dict[MachineType, float]) -> float:
    """Return the least USD per hour of storage, trying every type and count, by the rules alone."""
    best = math.inf
    for one, usd in priced.items():
        for nodes in range(1, 257):
            rate = nodes * math.floor(min(one.ssd_read_bytes_per_s, 0.707 * one.nic_bytes_per_s))
            stored = given_dataset.bytes + 4_608 * given_dataset.files
            fullest = math.ceil((stored + (given_dataset.largest_bytes + 4_608) * (nodes - 1)) / nodes)
            held = math.ceil(fullest * 1.10) + 300 * 10**6
            fits = rate >= (spec.demand.read_bytes_per_s or 0) and held <= one.disk_count * one.disk_bytes
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
