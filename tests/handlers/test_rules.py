"""A team's policy and prices in the run bucket: held to by every new run, and never ignored when they are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from headrace.domain.receipt import Receipt
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import STORAGE_TYPES, job, nodes_of, only_run, receipt_of, simulated_site

BUCKET = SETTINGS.run_bucket
PRICES = "usd_per_hour: {us-east-1: {i4i.large: 0.05}}"


@pytest.fixture
def site() -> Iterator[SimulatedSite]:
    with simulated_site(settings=replace(SETTINGS, rules_prefix="config/")) as made:
        yield made


def receipt_with(site: SimulatedSite, **files: str | bytes) -> Receipt:
    for name, text in files.items():
        site.objects.put(BUCKET, f"config/{name}.yaml", text if isinstance(text, bytes) else text.encode())
    site.run(job())
    return receipt_of(site)


def test_without_files_nothing_is_ruled(site: SimulatedSite) -> None:
    assert receipt_with(site).status == "SUCCEEDED"
    assert {node.usd_per_hour for node in nodes_of(site) if node.role == "storage"} == {STORAGE_TYPES["i4i.large"]}


def test_a_policy_refuses_before_anything_is_launched(site: SimulatedSite) -> None:
    receipt = receipt_with(site, policy="denied_types: [c7i.*]")
    assert receipt.status == "FAILED"
    assert "PlanLayout: InfeasibleJob: the policy does not allow compute.instance_type 'c7i.large'" in str(
        receipt.reason
    )
    assert nodes_of(site) == ()


@pytest.mark.parametrize("name", ["policy", "prices"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("max_usd: 3", "max_usd"),
        ("- a list", "it is not a mapping"),
        (b"\xff\xfe", "it is not UTF-8 text (byte 0)"),
    ],
)
def test_a_file_that_is_not_valid_refuses_every_new_run_and_says_why(
    site: SimulatedSite, name: str, text: str | bytes, fault: str
) -> None:
    receipt = receipt_with(site, **{name: text})
    assert receipt.status == "FAILED"
    assert str(receipt.reason).startswith(f"PlanLayout: BadSettings: s3://{BUCKET}/config/{name}.yaml is not valid:")
    assert fault in str(receipt.reason)
    assert nodes_of(site) == ()


def test_prices_of_the_team_are_what_the_plan_and_the_bill_count(site: SimulatedSite) -> None:
    receipt = receipt_with(site, prices=PRICES)
    assert receipt.status == "SUCCEEDED"
    assert {node.usd_per_hour for node in nodes_of(site) if node.role == "storage"} == {0.05}
    assert receipt.estimated_usd_high is not None
    assert receipt.usd <= receipt.estimated_usd_high


def test_a_change_of_the_files_disturbs_no_run_in_flight(site: SimulatedSite) -> None:
    site.objects.put(BUCKET, "config/prices.yaml", PRICES.encode())
    arn = site.start(job())
    site.settle(1)
    assert only_run(site).phases[-1].name == "storage"
    site.objects.put(BUCKET, "config/prices.yaml", b"nonsense: 1")
    site.loop.run_until_complete(site.interpreter.wait(arn))
    site.settle()
    assert receipt_of(site).status == "SUCCEEDED"
