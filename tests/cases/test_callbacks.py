"""Field complaints about task tokens, events and retries: lost, doubled, late, twice at once (reference/cases.csv)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.errors import EventRefused
from headrace.domain.instants import from_text, to_text
from headrace.domain.nodeconfig import Identity
from headrace.domain.run import NodeRow
from headrace.handlers import launch_fleet, on_agent_event
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.local.store import LocalRuns
from tests.cases.troubles import cut_short, failing_after_first, launched, receipts_of
from tests.security.bad_events import Event, Sender, signed
from tests.simulated_runs import (
    ending_of,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

PLANNED = 3


def compute_node(site: SimulatedSite) -> NodeRow:
    return next(node for node in nodes_of(site) if node.role == "compute")


def sender_of(site: SimulatedSite) -> Sender:
    node = compute_node(site)
    name = f"{only_run(site).prefix}nodes/{node.node_id}/identity.json"
    key = Identity.model_validate_json(site.objects.get(SETTINGS.run_bucket, name)).hmac_key
    return Sender(node.run_id, node.node_id, node.attempt, bytes.fromhex(key))


def manifest_of(site: SimulatedSite) -> dict[str, Any]:
    """Return the body of a Job Done that names a manifest, whether it is there yet or not."""
    return {"manifest": f"results/{compute_node(site).node_id}/manifest.json", "files": 1, "bytes": 15}


def dropping(site: SimulatedSite, detail_type: str) -> None:
    """Lose every event of the type on its way to the bus."""
    accept = site.bus.accept

    def losing(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        kept = [entry for entry in entries if entry["DetailType"] != detail_type]
        return accept(kept) if kept else {"FailedEntryCount": 0, "Entries": []}

    site.bus.accept = losing  # type: ignore[method-assign]


def silence(site: SimulatedSite) -> None:
    """Stop every agent, so that only the test speaks."""
    for machine in site.fleets.machines.values():
        for task in machine.tasks:
            task.cancel()


def test_r010_a_function_that_died_between_launch_and_record_finds_its_machines_by_the_same_token() -> None:
    with simulated_site() as site:
        start_until(site, "storage")
        run_id = only_run(site).run_id
        silence(site)
        before = sorted(node.node_id for node in nodes_of(site))
        for node in nodes_of(site):
            site.cloud.runs.delete(run_id, "node", node.node_id)
        launch_fleet.step({"run_id": run_id, "role": "storage", "attempt": 1}, site.cloud)
        assert sorted(node.node_id for node in nodes_of(site)) == before


def test_r059_a_lost_job_done_event_ends_the_run_within_the_heartbeat_limit() -> None:
    with simulated_site() as site:
        dropping(site, "Job Done")
        arn = start_until(site, "training")
        assert ending_of(site, arn).status == "FAILED"
        row = only_run(site)
        began = next(from_text(mark.at) for mark in row.phases if mark.name == "training")
        trained_seconds, window_seconds = 60, site.cloud.settings.heartbeat_timeout_seconds
        assert from_text(str(row.tombstone_at)) - began < timedelta(seconds=trained_seconds + 2 * window_seconds)
        assert machines_alive(site) == []


def test_r060_a_job_done_after_the_end_makes_no_second_report() -> None:
    with simulated_site() as site:
        arn = start_until(site, "training")
        late = signed(sender_of(site), "Job Done", 10**6, manifest_of(site))
        silence(site)
        assert ending_of(site, arn).status == "FAILED"
        reported = receipts_of(site)
        with pytest.raises(EventRefused):
            on_agent_event.step(late, site.cloud)
        assert receipts_of(site) == reported
        assert only_run(site).status == "FAILED"


def test_r062_a_second_job_done_for_a_token_that_was_answered_is_dropped() -> None:
    with simulated_site() as site:
        invoke, answers = site.invoke, list[Any]()

        async def told_again(name: str, payload: Any) -> Any:
            if name == "CollectResults":
                event = signed(sender_of(site), "Job Done", 10**6, manifest_of(site))
                answers.append(on_agent_event.step(event, site.cloud))
            return await invoke(name, payload)

        site.invoke = told_again
        assert site.run(job()).status == "SUCCEEDED"
        assert answers == [{"applied": True}]
        assert len(receipts_of(site)) == 1


def test_r078_one_event_delivered_five_times_and_once_more_after_two_days_counts_once() -> None:
    with simulated_site() as site:
        start_until(site, "training")
        event = signed(sender_of(site), "Job Started", 10**6, {"pid": 7})
        answers = [on_agent_event.step(event, site.cloud)["applied"] for _ in range(5)]
        assert answers == [True, False, False, False, False]
        site.settle(2 * 86_400)
        with pytest.raises(EventRefused):
            on_agent_event.step(event, site.cloud)


@pytest.mark.parametrize("minutes", [-20, 20])
def test_r137_heartbeats_count_by_the_servers_clock_however_wrong_the_agents_is(minutes: int) -> None:
    with simulated_site() as site:
        start_until(site, "training")
        silence(site)
        now = site.cloud.clock.now()
        beat = signed(sender_of(site), "Telemetry Sampled", 10**6, sent_at=to_text(now + timedelta(minutes=minutes)))
        assert on_agent_event.step(beat, site.cloud) == {"applied": True}
        assert compute_node(site).last_heard_at == to_text(now)


@pytest.mark.parametrize("function", ["InspectDataset", "PlanLayout", "LaunchFleet", "CheckNodes", "ConfigureNodes"])
def test_r150_r151_a_function_killed_after_its_work_is_repeated_without_a_second_effect(function: str) -> None:
    with simulated_site() as site:
        cut_short(site, function)
        assert site.run(job()).status == "SUCCEEDED"
        assert launched(site) == PLANNED
        assert receipt_of(site).results_files == 1


@pytest.mark.parametrize("function", ["StageDataset", "TrainJob", "ReleaseCompute", "CollectResults", "ReportRun"])
def test_r150_a_step_killed_in_the_middle_goes_on_when_it_is_tried_again(function: str) -> None:
    with simulated_site() as site:
        cut_short(site, function)
        assert site.run(job()).status == "SUCCEEDED"
        assert len(receipts_of(site)) == 1
        assert machines_alive(site) == []


def test_r150_an_event_whose_handling_was_cut_short_is_finished_by_its_repeat() -> None:
    with simulated_site() as site:
        start_until(site, "training")
        silence(site)
        event: Event = signed(sender_of(site), "Job Failed", 10**6, {"reason": "out of memory"})
        fail = site.cloud.executions.fail
        site.cloud.executions.fail = failing_after_first(RuntimeError("killed"), fail)  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="killed"):
            on_agent_event.step(event, site.cloud)
        assert on_agent_event.step(event, site.cloud) == {"applied": True}
        assert on_agent_event.step(event, site.cloud) == {"applied": False}


def test_r152_the_same_event_twice_at_once_is_no_error(tmp_path: Path) -> None:
    with simulated_site() as site:
        start_until(site, "training")
        silence(site)
        event = signed(sender_of(site), "Job Started", 10**6, {"pid": 7})
        runs, run = LocalRuns(tmp_path / "runs.sqlite3"), only_run(site)
        runs.insert(run.run_id, "run", "run", {**run.model_dump(mode="json"), "training_token": None})
        node = compute_node(site)
        runs.insert(run.run_id, "node", node.node_id, node.model_dump(mode="json"))
        cloud, start, answers = replace(site.cloud, runs=runs), threading.Barrier(8), list[Any]()

        def deliver() -> None:
            start.wait()
            answers.append(on_agent_event.step(event, cloud))

        threads = [threading.Thread(target=deliver) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 8
        assert len(runs.items(run.run_id, "event")) == 1
        assert (runs.read(run.run_id, "node", node.node_id) or {})["last_sequence"] == 10**6
        runs.close()
