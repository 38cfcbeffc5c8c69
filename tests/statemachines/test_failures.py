"""From every state after admission, every failure leads to Decommission, a report, and nothing left running."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.errors import BadJob, CapacityUnavailable
from headrace.local.faults import Faults
from tests.simulated_runs import (
    ending_of,
    failing_function,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

IN_THE_RUN = ["InspectDataset", "PlanLayout", "StageDataset", "TrainJob", "ReleaseCompute", "CollectResults"]
IN_A_FLEET = ["LaunchFleet", "CheckNodes", "ConfigureNodes", "CheckConfiguration"]


@pytest.mark.parametrize("function", [name for name in IN_THE_RUN if name != "ReleaseCompute"] + IN_A_FLEET)
def test_a_failing_function_ends_in_a_report_with_nothing_running(function: str) -> None:
    with simulated_site() as site:
        failing_function(site, function, RuntimeError("the function broke"))
        assert site.run(job()).status == "FAILED"
        receipt = receipt_of(site)
        assert receipt.status == "FAILED"
        assert "the function broke" in str(receipt.reason)
        assert machines_alive(site) == []


def test_a_release_that_fails_is_no_reason_to_call_a_finished_job_failed() -> None:
    with simulated_site() as site:
        failing_function(site, "ReleaseCompute", RuntimeError("the function broke"))
        assert site.run(job()).status == "SUCCEEDED"
        assert machines_alive(site) == []


def test_a_decommission_that_broke_is_started_again_by_the_status_rule() -> None:
    with simulated_site() as site:
        invoke = site.invoke

        async def denied_while_the_run_lives(name: str, payload: Any) -> Any:
            if name == "TerminateNodes" and site.cloud.executions.is_running(only_run(site).execution_arn):
                raise RuntimeError("denied")
            return await invoke(name, payload)

        site.invoke = denied_while_the_run_lives
        ended = site.run(job())
        assert (ended.status, ended.error) == ("FAILED", "States.TaskFailed")
        assert receipt_of(site).status == "SUCCEEDED", "its results had been checked before"
        assert machines_alive(site) == []


@pytest.mark.parametrize("phase", ["storage", "staging", "compute", "training"])
def test_a_stopped_execution_is_decommissioned_and_reported_by_the_status_rule(phase: str) -> None:
    with simulated_site(files=40) as site:
        arn = start_until(site, phase)
        site.cloud.runs.update(only_run(site).run_id, "run", "run", {"stop_requested_by": "a person"}, {})
        site.cloud.executions.stop(arn, "stopped by a person")
        assert ending_of(site, arn).status == "ABORTED"
        assert (receipt_of(site).status, receipt_of(site).reason) == ("STOPPED", "stopped by a person")
        assert machines_alive(site) == []


def test_a_job_that_exits_with_1_fails_and_keeps_what_it_saved() -> None:
    with simulated_site() as site:
        site.exit_code = 1
        assert site.run(job()).status == "FAILED"
        assert "exit code 1" in str(receipt_of(site).reason)
        assert len(site.objects.page("out", "small/").objects) == 1
        assert machines_alive(site) == []


def test_an_agent_that_dies_while_training_fails_the_run_by_missing_heartbeat() -> None:
    with simulated_site() as site:
        arn = start_until(site, "training")
        for node in nodes_of(site):
            if node.role == "compute":
                site.fleets.machines[node.node_id].stop()
        assert ending_of(site, arn).status == "FAILED"
        assert "NodeLost: its machines were not heard" in str(receipt_of(site).reason)
        assert machines_alive(site) == []


@pytest.mark.parametrize("says_goodbye", [True, False])
@pytest.mark.parametrize(("resilience", "status"), [("mirror", "SUCCEEDED"), ("none", "FAILED")])
def test_a_storage_node_lost_while_training_is_missed_only_where_nothing_mirrors_it(
    resilience: str, status: str, says_goodbye: bool
) -> None:
    with simulated_site() as site:
        arn = start_until(site, "training", job(resilience=resilience))
        storage = [node for node in nodes_of(site) if node.role == "storage"]
        site.fleets.lose(storage[0].node_id, "reclaimed", says_goodbye=says_goodbye)
        assert ending_of(site, arn).status == status
        assert machines_alive(site) == []


def test_an_agent_that_only_idles_on_is_not_waited_for() -> None:
    with simulated_site() as site:
        arn = start_until(site, "training")
        for agent in site.agents.values():
            agent.forget_work()
        assert ending_of(site, arn).status == "FAILED"
        assert "NodeLost: its machines were not heard" in str(receipt_of(site).reason)


def test_a_storage_node_that_leaves_while_others_train_fails_the_run() -> None:
    with simulated_site() as site:
        arn = start_until(site, "training")
        storage = next(node for node in nodes_of(site) if node.role == "storage")
        site.agents[storage.node_id].say_goodbye("spot interruption")
        site.fleets.machines[storage.node_id].stop()
        assert ending_of(site, arn).status == "FAILED"
        assert "spot interruption" in str(receipt_of(site).reason)


def test_a_bad_job_is_refused_with_all_its_faults_before_there_is_a_run() -> None:
    with simulated_site() as site:
        ended = site.run({"job": {"name": "Not A Slug", "command": "python train.py"}})
        assert (ended.status, ended.error) == ("FAILED", BadJob.__name__)
        assert all(word in str(ended.cause) for word in ("name", "command", "data", "results", "compute"))
        assert list(site.cloud.runs.run_ids()) == []


def test_an_empty_prefix_is_found_before_anything_is_launched() -> None:
    with simulated_site(files=0) as site:
        site.run(job())
        assert "holds no object" in str(receipt_of(site).reason)
        assert nodes_of(site) == ()


def test_a_results_bucket_that_answers_403_is_found_before_anything_is_launched() -> None:
    with simulated_site(faults=Faults.parse(["denied:out"])) as site:
        site.run(job())
        assert "DestinationDenied" in str(receipt_of(site).reason)
        assert nodes_of(site) == ()


def test_results_that_vanished_from_the_bucket_fail_the_run() -> None:
    with simulated_site() as site:
        invoke = site.invoke

        async def losing(name: str, payload: Any) -> Any:
            if name == "CollectResults":
                (saved,) = site.objects.page("out", "small/").objects
                site.objects.delete("out", saved.key)
            return await invoke(name, payload)

        site.invoke = losing
        site.run(job())
        assert "ResultsIncomplete" in str(receipt_of(site).reason)
        assert "is missing" in str(receipt_of(site).reason)


def test_a_launch_that_races_the_tombstone_is_undone() -> None:
    with simulated_site() as site:
        launch = site.fleets.launch

        def racing(request: object) -> object:
            site.cloud.runs.update(only_run(site).run_id, "run", "run", {"tombstone_at": "2026-01-01T00:00:00Z"}, {})
            return launch(request)  # type: ignore[arg-type]

        site.fleets.launch = racing  # type: ignore[method-assign, assignment]
        site.run(job())
        assert "RunTombstoned" in str(receipt_of(site).reason)
        assert machines_alive(site) == []


def test_a_fleet_that_cannot_be_had_is_named_by_its_own_error() -> None:
    with simulated_site(faults=Faults.parse(["capacity:c7i.large"])) as site:
        site.run(job())
        assert f"ProvisionCompute: {CapacityUnavailable.__name__}" in str(receipt_of(site).reason)


def test_trouble_with_s3_while_results_are_checked_does_not_fail_a_finished_job() -> None:
    with simulated_site() as site:
        invoke = site.invoke
        failures = iter([RuntimeError("InternalError")] * 3)

        async def troubled(name: str, payload: Any) -> Any:
            if name in ("CollectResults", "ReportRun") and (error := next(failures, None)):
                raise error
            return await invoke(name, payload)

        site.invoke = troubled
        assert site.run(job()).status == "SUCCEEDED"
        assert receipt_of(site).status == "SUCCEEDED"
