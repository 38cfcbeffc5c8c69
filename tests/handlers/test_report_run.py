"""A run has one receipt, whoever reports, however often, and whatever died over it."""

from __future__ import annotations

import pytest

from headrace.handlers import report_run
from headrace.handlers._leftovers import clean
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import job, only_run, receipt_of, simulated_site

FAILURE = {"state": "the run", "error": "ProcessDied", "cause": "it died"}


def receipts(site: SimulatedSite) -> list[str]:
    """Return the keys of all receipts in the run bucket."""
    return [one.key for one in site.objects.page(SETTINGS.run_bucket, f"{only_run(site).prefix}receipt").objects]


def as_before_the_report(site: SimulatedSite, results_checked_at: str | None = None) -> dict[str, object]:
    """Run the small job, take its end off the row, and return the request that reports it."""
    site.run(job())
    row = only_run(site)
    before = {"ended_at": None, "report_key": None, "status": "RUNNING", "results_checked_at": results_checked_at}
    site.cloud.runs.update(row.run_id, "run", "run", before, {})
    return {"run_id": row.run_id, "failure": FAILURE}


def test_what_a_reporter_left_that_died_before_the_row_named_it_is_removed() -> None:
    with simulated_site() as site:
        request = as_before_the_report(site)
        (left,) = receipts(site)
        report_run.step(request, site.cloud)
        assert receipts(site) == [only_run(site).report_key]
        assert left != only_run(site).report_key
        assert receipt_of(site).status == "FAILED"


def test_a_run_whose_results_were_checked_is_a_success_however_it_was_ended_after_that() -> None:
    with simulated_site() as site:
        request = as_before_the_report(site, results_checked_at="2026-12-01T00:00:00Z")
        assert report_run.step(request, site.cloud)["status"] == "SUCCEEDED"
        assert (receipt_of(site).status, receipt_of(site).reason) == ("SUCCEEDED", None)


def test_of_two_that_report_at_once_the_first_counts_and_the_other_leaves_nothing() -> None:
    with simulated_site() as site:
        request = as_before_the_report(site)
        put = site.objects.put

        def overtaken(bucket: str, key: str, body: bytes) -> None:
            put(bucket, key, body)
            site.objects.put = put  # type: ignore[method-assign]
            report_run.step({**request, "failure": None}, site.cloud)

        site.objects.put = overtaken  # type: ignore[method-assign]
        assert report_run.step(request, site.cloud)["status"] == "SUCCEEDED"
        assert receipts(site) == [only_run(site).report_key]


@pytest.mark.parametrize("failure", [None, FAILURE])
def test_a_run_that_has_reported_answers_what_it_reported(failure: dict[str, str] | None) -> None:
    with simulated_site() as site:
        site.run(job())
        before = receipts(site)
        answer = report_run.step({"run_id": only_run(site).run_id, "failure": failure}, site.cloud)
        assert answer["status"] == "SUCCEEDED"
        assert receipts(site) == before


def test_what_a_second_reporter_left_that_died_before_it_removed_its_own_is_removed_by_its_retry() -> None:
    with simulated_site() as site:
        request = as_before_the_report(site)
        report_run.step(request, site.cloud)
        left = f"{only_run(site).prefix}receipt-00000000.json"
        site.objects.put(SETTINGS.run_bucket, left, b"{}")
        report_run.step(request, site.cloud)
        assert receipts(site) == [only_run(site).report_key]


def test_what_nobody_came_back_to_remove_is_removed_by_the_sweep() -> None:
    with simulated_site() as site:
        report_run.step(as_before_the_report(site), site.cloud)
        site.objects.put(SETTINGS.run_bucket, f"{only_run(site).prefix}receipt-00000000.json", b"{}")
        clean(site.cloud, only_run(site))
        assert receipts(site) == [only_run(site).report_key]


def test_a_plan_that_s3_does_not_show_for_a_moment_makes_no_machine_free() -> None:
    with simulated_site() as site:
        request = as_before_the_report(site)
        row = only_run(site)
        for node in site.cloud.runs.items(row.run_id, "node"):
            site.cloud.runs.delete(row.run_id, "node", node["node_id"])
        site.objects.delete(SETTINGS.run_bucket, f"{row.prefix}plan.json")
        report_run.step(request, site.cloud)
        machines = [one for one in receipt_of(site).resources if one.kind == "node"]
        assert len(machines) == 3
        assert all(one.usd > 0 for one in machines)
