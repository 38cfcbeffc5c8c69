"""Published results agree with the demand that plans count on, and the largest run is fed for less."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from headrace.domain.benchmarks import Benchmarks, parse_benchmarks
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.largest_run import LargestRunReplay, job_of
from headrace.domain.planner import plan
from headrace.domain.replay import Replay, replay
from tests.domain.conftest import DATA
from tests.domain.small_world import GB

ITS_BILL_USD_PER_HOUR = 1_388.54


@pytest.fixture(scope="module")
def benchmarks() -> Benchmarks:
    return parse_benchmarks(gzip.decompress((DATA / "benchmarks.json.gz").read_bytes()).decode())


@pytest.fixture(scope="module")
def found(benchmarks: Benchmarks, catalog: Catalog, prices: PriceList) -> Replay:
    return replay(benchmarks, catalog, prices)


@pytest.fixture(scope="module")
def largest(found: Replay) -> LargestRunReplay:
    return found.largest


def test_every_published_row_is_there_but_the_copied_one(found: Replay) -> None:
    assert len(found.rows) == 131
    copied = [row for row in found.rows if row.system.endswith("Nclient1/unet3d-h100/unet3d_1acc")]
    assert [row.accelerators for row in copied if "F8000X" in row.system] == []
    assert (found.licence, "storage_results_v1.0" in found.source) == ("Apache-2.0", True)


def test_the_demand_of_each_workload_agrees_with_what_was_measured(found: Replay) -> None:
    assert {one.workload: one.rows for one in found.errors} == {"cosmoflow": 35, "resnet50": 43, "unet3d": 53}
    assert [one for one in found.errors if one.median_error > 0.03] == []


def test_rows_that_are_off_by_more_than_ten_percent_are_listed(found: Replay) -> None:
    assert [one for one in found.rows if abs(one.error) > 0.10] == list(found.outliers)
    assert {one.submitter for one in found.outliers} == {"Micron"}


def test_every_count_of_the_table_has_a_plan_or_says_what_it_would_take(found: Replay) -> None:
    wanted = {(one.workload, one.accelerator, one.accelerators) for one in found.rows}
    assert {(one.workload, one.accelerator, one.accelerators) for one in found.plans} == wanted
    for one in found.plans:
        if one.refused:
            assert "nothing can run the job" in one.refused
            assert (one.accelerator, one.interfaces) == ("a100", 4), "only p4d is short of network with one interface"
        assert one.limit is not None
        assert one.limit.needed <= one.limit.offered
        assert one.usd_per_accelerator_hour is not None


def test_what_the_largest_run_s_storage_can_serve_covers_both_its_rows(largest: LargestRunReplay) -> None:
    assert [round(one / GB) for one in largest.measured_bytes_per_s] == [1_132, 1_196]
    assert max(largest.measured_bytes_per_s) <= largest.capacity_bytes_per_s
    assert largest.capacity_bytes_per_s <= 1.10 * max(largest.measured_bytes_per_s)
    assert largest.own_usd_per_hour == ITS_BILL_USD_PER_HOUR


def test_the_largest_run_is_fed_for_72_percent_of_its_storage_bill(largest: LargestRunReplay) -> None:
    best = largest.figures[0]
    assert best.condition == "on demand"
    assert best.usd_per_hour <= 0.72 * ITS_BILL_USD_PER_HOUR
    assert best.nodes <= 256
    assert [one.condition for one in largest.figures[1:4]] == [
        "on demand, x86 only",
        "on demand, any number of nodes",
        "spot, at published savings",
    ]


def test_the_planner_chooses_what_the_replay_shows(
    largest: LargestRunReplay, benchmarks: Benchmarks, catalog: Catalog, prices: PriceList
) -> None:
    run = benchmarks.largest
    data = DatasetSummary(files=run.files, bytes=run.files * run.file_bytes, largest_bytes=run.file_bytes, parts=())
    made = plan(job_of(run, largest.measured_bytes_per_s[0]), data, catalog, prices)
    storage = made.fleet("storage")
    assert storage is not None
    assert f"{storage.count} x {storage.instance_type}" == largest.figures[0].machines
    assert all(one.mirror_node_indexes for one in made.dataset_volumes)


def test_a_greater_share_of_the_nic_never_costs_more(
    largest: LargestRunReplay, record_property: Callable[[str, object], None]
) -> None:
    shares = [one.nic_fraction for one in largest.sensitivity]
    costs = [one.cheapest.usd_per_hour for one in largest.sensitivity]
    assert shares == sorted(shares)
    assert costs == sorted(costs, reverse=True)
    record_property("figure", f"largest run: {largest.figures[0].share_of_bill:.1%} of its storage bill on demand")
