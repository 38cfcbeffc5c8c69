"""What cannot be planned is refused in a sentence: what was asked, what was found, and what to change."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.catalog import Catalog, Market, PriceList, parse_catalog, parse_prices
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import BadJob, InfeasibleJob
from headrace.domain.job_text import job_from_mapping
from headrace.domain.overrides import Overrides
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from tests.domain.small_world import SMALL, TB, job

PB = 10**15
H100 = {"accelerator": "h100", "count": 8}


def planned(here: Market, total: int = TB, files: int = 1_000, **changes: Any) -> Plan:
    data = DatasetSummary(files=files, bytes=total, largest_bytes=total // max(1, files), parts=())
    return plan(job(**{"compute": H100, **changes}), data, *here)


def refused(here: Market, **changes: Any) -> str:
    with pytest.raises(InfeasibleJob, match=r".*") as found:
        planned(here, **changes)
    return str(found.value)


@pytest.fixture(scope="module")
def here(catalog: Catalog, prices: PriceList) -> Market:
    return Market(catalog, prices)


def elsewhere(catalog_text: str, prices_text: str, region: str) -> Market:
    return Market(parse_catalog(catalog_text, region), parse_prices(prices_text, region))


def test_an_impossible_demand_gets_the_largest_that_can_be_fed(here: Market) -> None:
    said = refused(here, demand={"read_bytes_per_s": TB})
    assert "a compute node's NIC brings in less than it needs (2, such as p5.48xlarge: 8.84 GB/s of 8 TB/s)" in said
    asked = re.search(r"Try demand\.read_bytes_per_s: (\d+)", said)
    assert asked
    assert planned(here, demand={"read_bytes_per_s": int(asked[1])})


def test_too_many_accelerators_get_the_number_that_can_be_fed(here: Market) -> None:
    said = refused(here, compute={"accelerator": "h100", "count": 10_000}, demand={"workload": "unet3d"})
    asked = re.search(r"Try compute\.count: (\d+)", said)
    assert asked
    assert planned(here, compute={"accelerator": "h100", "count": int(asked[1])}, demand={"workload": "unet3d"})


def test_machines_of_which_one_interface_is_counted_get_what_several_would_do(here: Market) -> None:
    asked = {"compute": {"accelerator": "a100", "count": 264}, "demand": {"workload": "unet3d"}}
    said = refused(here, total=100 * TB, files=10**6, **asked)
    assert "nic_gbps: {p4d.24xlarge: 400} in the price overrides, if its connections are spread over 4" in said
    wider = Overrides(nic_gbps={"p4d.24xlarge": 400.0}).applied(here)
    assert planned(wider, total=100 * TB, files=10**6, **asked)


def test_an_unknown_accelerator_gets_the_close_ones(here: Market) -> None:
    said = refused(here, compute={"accelerator": "h1000", "count": 1})
    assert said == "compute.accelerator 'h1000' is on no machine in us-east-1; close: h100, v100, h200"


def test_what_another_region_offers_is_named_with_those_regions(catalog_text: str, prices_text: str) -> None:
    milan = elsewhere(catalog_text, prices_text, "eu-south-1")
    said = refused(milan, compute={"instance_type": "p5.48xlarge"})
    assert said.startswith("compute.instance_type 'p5.48xlarge' is not offered in eu-south-1; offered in ap-")
    assert said.endswith("Write compute.region")
    accelerator = refused(milan)
    assert "compute.accelerator 'h100' is on no machine in eu-south-1; machines with it are in ap-" in accelerator


def test_an_unknown_region_gets_the_close_ones(catalog_text: str, prices_text: str) -> None:
    said = refused(elsewhere(catalog_text, prices_text, "us-east-11"))
    assert said.startswith("no machines are known in the region 'us-east-11'; known: us-east-1")


def test_a_missing_price_is_never_free(catalog_text: str, prices_text: str) -> None:
    frankfurt = elsewhere(catalog_text, prices_text, "eu-central-1")
    said = refused(frankfurt, compute={"instance_type": "g6.xlarge"})
    assert said == (
        "compute.instance_type 'g6.xlarge' cannot be planned: no price known in eu-central-1; write it in the price "
        "overrides"
    )
    unpriced = here_without_prices(frankfurt)
    assert "no price known in eu-central-1" in refused(unpriced, compute={"accelerator": "a100", "count": 8})


def here_without_prices(market: Market) -> Market:
    return Market(market.catalog, market.prices.model_copy(update={"on_demand": {}}))


def test_no_fleet_of_any_region_has_a_free_machine(catalog_text: str, prices_text: str) -> None:
    for region in parse_catalog(catalog_text, "us-east-1").regions:
        market = elsewhere(catalog_text, prices_text, region)
        assert all(usd > 0 for usd in market.prices.on_demand.values())


@pytest.mark.parametrize("files", [0, 5])
def test_data_without_a_byte_are_refused(here: Market, files: int) -> None:
    said = refused(here, total=0, files=files)
    assert said == (
        f"the data set has {files} files and not one byte, so there is nothing to hold or read; check data.source"
    )


def test_a_petabyte_is_planned_and_an_exabyte_gets_what_could_be_held(here: Market) -> None:
    made = planned(here, total=PB, files=10**6)
    storage = made.fleet("storage")
    assert storage is not None
    assert storage.count * storage.disk_count * storage.disk_bytes >= 1.1 * PB
    said = refused(here, total=1_000 * PB, files=10**6)
    assert "256 nodes hold less than the data set" in said
    assert re.search(r"Try a data set of [\d.]+ PB of such files", said)


def test_a_budget_below_the_least_gets_the_least(here: Market) -> None:
    said = refused(here, budget_usd=1.0)
    assert "budget_usd is 1.00 USD; the cheapest plan, 1 x p5.48xlarge for 1 h, costs" in said
    least = re.search(r"budget_usd: ([\d.]+)$", said)
    assert least
    assert planned(here, budget_usd=float(least[1]))


def test_checkpoints_that_fit_nowhere_are_said_to(here: Market) -> None:
    said = refused(here, demand={"checkpoints": {"parameters": 10**13, "period_s": 60}})
    assert "SSDs hold fewer than two checkpoints (2, such as p5.48xlarge: 30.4 TB of 280 TB)" in said
    assert said.endswith("Try smaller or rarer checkpoints")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checkpoints": {"period_s": 60}}, "needs exactly one of 'bytes' and 'parameters'"),
        ({"checkpoints": {"bytes": 1, "parameters": 1, "period_s": 60}}, "needs exactly one of"),
        ({"read_latency_ms": 0}, "read_latency_ms"),
        ({"request_bytes": -1}, "request_bytes"),
    ],
)
def test_a_demand_that_means_nothing_is_refused_by_its_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadJob, match=re.escape(said)):
        job_from_mapping({**job().model_dump(mode="json", exclude_unset=True), "demand": changes})


@given(st.integers(1, 10**18), st.integers(1, 10**12), st.integers(1, 10**13), st.integers(1, 20_000))
def test_whatever_the_size_there_is_a_plan_or_a_sentence(total: int, files: int, reads: int, count: int) -> None:
    data = DatasetSummary(files=files, bytes=total, largest_bytes=-(-total // files), parts=())
    spec = job(compute={"instance_type": "cpu.large", "count": count}, demand={"read_bytes_per_s": reads})
    said = ""
    try:
        made: Plan | None = plan(spec, data, *SMALL)
    except InfeasibleJob as refusal:
        made, said = None, str(refusal)
    if made is None:
        assert re.match(r"nothing can run the job 'small' in us-east-1: .+\. (Try|Nothing like it) .+", said)
    else:
        assert made.chosen.limit.needed <= made.chosen.limit.offered * 1.0001
        assert made.chosen.usd_low > 0
