"""The steps that end a run: nothing hidden is taken for gone, nothing gone is asked again, everything is billed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.domain.errors import DeadlineExceeded, NodesStillRunning
from headrace.domain.instants import from_text, to_text
from headrace.domain.presence import HIDDEN_SECONDS
from headrace.handlers import confirm_terminated, launch_fleet, report_run, terminate_nodes
from headrace.handlers._files import read_plan
from headrace.handlers._launches import are_launches_settled, note_adopted, note_asked
from headrace.handlers._leftovers import remove_stray_receipts
from headrace.handlers._requests import first_requests
from headrace.handlers._rows import read_run
from headrace.local.faults import Faults
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import job, machines_alive, nodes_of, only_run, receipt_of, simulated_site, start_until


@pytest.fixture
def launched() -> Iterator[SimulatedSite]:
    """Yield a site whose storage was launched a moment ago and whose execution then stands still."""
    with simulated_site(has_rule=False, sweep_seconds=None) as site:
        invoke = site.invoke

        async def only_launch(name: str, payload: Any) -> Any:
            if name in ("CheckNodes", "MarkTombstone"):
                raise RuntimeError("not yet")
            return await invoke(name, payload)

        site.invoke = only_launch
        start_until(site, "storage")
        yield site


def order(site: SimulatedSite) -> dict[str, Any]:
    return {"run_id": only_run(site).run_id}


def test_a_machine_that_no_listing_shows_yet_is_waited_for_and_then_terminated(launched: SimulatedSite) -> None:
    """R025, R026: describing right after a launch answers "not found" for minutes."""
    ids = [node.node_id for node in nodes_of(launched)]
    launched.fleets.hide(ids, 120)
    terminate_nodes.step(order(launched), launched.cloud)
    assert [node.released_at for node in nodes_of(launched)] == [None, None]
    assert confirm_terminated.step(order(launched), launched.cloud) == {"remaining": 2}
    launched.settle(121)
    terminate_nodes.step(order(launched), launched.cloud)
    launched.settle(60)
    assert confirm_terminated.step(order(launched), launched.cloud) == {"remaining": 0}
    assert machines_alive(launched) == []


def test_machines_that_are_gone_are_asked_no_more_so_a_denial_cannot_keep_the_run_open(launched: SimulatedSite) -> None:
    """R149: termination denied by a policy."""
    launched.fleets.deny_terminate(10**6)
    with pytest.raises(NodesStillRunning, match="UnauthorizedOperation"):
        terminate_nodes.step(order(launched), launched.cloud)
    for node in nodes_of(launched):
        launched.fleets.lose(node.node_id, "its lease ran out", says_goodbye=False)
    launched.settle(60)
    assert terminate_nodes.step(order(launched), launched.cloud) == {"asked": 0}
    assert all(node.released_at for node in nodes_of(launched))


def test_a_launch_that_was_cut_short_is_waited_for_until_its_machines_would_show(launched: SimulatedSite) -> None:
    """R008: what a launch brought about is looked for even where nobody was told of it."""
    run_id = only_run(launched).run_id
    launched.cloud.runs.update(run_id, "launch", f"{run_id}-storage-1", {"is_adopted": False}, {})
    terminate_nodes.step(order(launched), launched.cloud)
    launched.settle(60)
    assert confirm_terminated.step(order(launched), launched.cloud) == {"remaining": 1}
    launched.settle(HIDDEN_SECONDS)
    assert are_launches_settled(launched.cloud, run_id)
    assert confirm_terminated.step(order(launched), launched.cloud) == {"remaining": 0}


@pytest.mark.parametrize(
    ("asks", "is_whole", "is_settled"),
    [(1, True, True), (1, False, True), (2, True, True), (2, False, False)],
    ids=["whole", "refused", "whole for one of two", "refused for one of two"],
)
def test_a_refused_twin_does_not_settle_a_launch_whose_other_answer_may_be_lost(
    launched: SimulatedSite, asks: int, is_whole: bool, is_settled: bool
) -> None:
    row = only_run(launched)
    (request, *_) = first_requests(row, read_plan(launched.cloud, row))
    fresh = replace(request, client_token="a launch of its own")
    for _ in range(asks):
        note_asked(launched.cloud, fresh)
    note_adopted(launched.cloud, fresh, is_whole=is_whole)
    assert are_launches_settled(launched.cloud, row.run_id) == is_settled


def test_nothing_is_launched_after_the_deadline_at_which_it_would_end_itself(launched: SimulatedSite) -> None:
    row = only_run(launched)
    past = to_text(launched.cloud.clock.now() - timedelta(seconds=1))
    launched.cloud.runs.update(row.run_id, "run", "run", {"deadline_at": past}, {})
    with pytest.raises(DeadlineExceeded, match="nothing is launched after it"):
        launch_fleet.step({"run_id": row.run_id, "role": "compute", "attempt": 1}, launched.cloud)
    assert {node.role for node in nodes_of(launched)} == {"storage"}


def test_a_machine_that_ended_by_itself_is_billed_until_then_and_not_until_somebody_noticed(
    launched: SimulatedSite,
) -> None:
    lost, kept = nodes_of(launched)
    launched.fleets.lose(lost.node_id, "reclaimed", says_goodbye=False)
    launched.settle(3600)
    terminate_nodes.step(order(launched), launched.cloud)
    launched.settle(60)
    report_run.step({**order(launched), "failure": {"state": "x", "error": "y", "cause": "z"}}, launched.cloud)
    usd = {one.resource_id: one.usd for one in receipt_of(launched).resources if one.kind == "node"}
    assert usd[lost.node_id] < usd[kept.node_id] / 50


def test_a_machine_that_went_on_after_it_was_told_to_end_is_billed_until_it_went() -> None:
    """A termination that is taken is not yet carried out, and what runs is paid for."""
    with simulated_site(plan=FaultPlan([Fault("slow_to_go", "fleets.terminate", 1, seconds=240.0)])) as site:
        site.run(job())
        (compute,) = [node for node in nodes_of(site) if node.role == "compute"]
        (line,) = [one for one in receipt_of(site).resources if one.resource_id == compute.node_id]
        ended_at = site.fleets.machines[compute.node_id].node.ended_at
        assert ended_at is not None
        assert line.released_at == to_text(ended_at)
        assert (ended_at - from_text(str(compute.released_at))).total_seconds() == pytest.approx(240, abs=1)


def test_what_a_machine_that_died_had_uploaded_of_a_result_is_removed() -> None:
    """Nobody completes it, no listing shows it, and it is paid for."""
    with simulated_site(plan=FaultPlan([Fault("half_upload", "machine", 3)])) as site:
        site.objects.upload_half("out", "small/another-run/model.bin", b"of another")
        site.run(job())
        assert only_run(site).status == "FAILED"
        assert list(site.objects.half_uploads) == [("out", "small/another-run/model.bin")]


def test_a_run_whose_results_may_not_be_touched_ends_nevertheless() -> None:
    with simulated_site(faults=Faults(denied_buckets=frozenset({"out"}))) as site:
        site.run(job())
        assert only_run(site).status == "FAILED"
        assert only_run(site).ended_at


def test_stray_receipts_are_removed_from_every_page_of_a_listing() -> None:
    with simulated_site(page_keys=1) as site:
        site.run(job())
        row = only_run(site)
        for name in ("0", "1", "z"):
            site.objects.put(SETTINGS.run_bucket, f"{row.prefix}receipt-{name}.json", b"{}")
        remove_stray_receipts(site.cloud, row)
        left = [key for key in site.objects.keys(SETTINGS.run_bucket) if "/receipt-" in key]
        assert left == [row.report_key]


def test_a_machine_that_no_row_knows_is_on_the_receipt(launched: SimulatedSite) -> None:
    known, unknown = nodes_of(launched)
    launched.cloud.runs.delete(known.run_id, "node", unknown.node_id)
    terminate_nodes.step(order(launched), launched.cloud)
    launched.settle(60)
    report_run.step({**order(launched), "failure": {"state": "x", "error": "y", "cause": "z"}}, launched.cloud)
    receipt = receipt_of(launched)
    assert {one.resource_id for one in receipt.resources if one.kind == "node"} == {known.node_id, unknown.node_id}
    assert {one.resource_id for one in receipt.resources if one.kind == "key"} == {f"key of {known.node_id}"}


def test_a_report_whose_answer_was_lost_keeps_its_receipt(launched: SimulatedSite) -> None:
    """The SDK sends an update again when the answer was lost; the second one finds its condition unmet."""
    cloud = launched.cloud
    update = cloud.runs.update

    def sent_twice(*args: Any) -> bool:
        update(*args)
        return update(*args)

    cloud.runs.update = sent_twice  # type: ignore[method-assign, assignment]
    answer = report_run.step({**order(launched), "failure": {"state": "x", "error": "y", "cause": "z"}}, cloud)
    assert answer["status"] == "FAILED"
    assert read_run(cloud, answer["run_id"]).report_key is not None
    assert receipt_of(launched).status == "FAILED"
