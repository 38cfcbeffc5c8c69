"""The sweep and machines: what no live run owns ends after two looks, what lives is left, one failure stops nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import pytest

from headrace.domain.instants import to_text
from headrace.domain.launch import LaunchRequest
from headrace.handlers import on_sweep
from headrace.handlers._rows import read_run
from headrace.local.recorder import recorded
from headrace.local.simulated.site import SETTINGS, START, SimulatedSite
from tests.handlers.sweeps import (
    GRACE_SECONDS,
    keep_training,
    lone_site,
    lose_execution,
    machines_of,
    observations,
    sweep,
    sweep_twice,
)
from tests.simulated_runs import (
    job,
    only_run,
    receipt_of,
    start_until,
)


@pytest.fixture
def site() -> Iterator[SimulatedSite]:
    with lone_site() as opened:
        yield opened


def lose_row(site: SimulatedSite) -> str:
    """Take away the only run's row and its execution, as a deleted table would; return the run's id."""
    row = only_run(site)
    site.cloud.executions.stop(row.execution_arn, "gone")
    site.cloud.runs.delete(row.run_id, "run", "run")
    return row.run_id


def test_r001_a_machine_whose_run_has_no_row_is_terminated_at_the_second_look(site: SimulatedSite) -> None:
    start_until(site, "training")
    run_id = lose_row(site)
    site.settle(GRACE_SECONDS)
    first = sweep(site)
    assert (first["acted"], first["watched"], len(machines_of(site, run_id))) == ({}, 3, 3)
    second = sweep(site)
    assert second["acted"] == {}, "a second look at once is no second look"
    site.settle(GRACE_SECONDS)
    assert sweep(site)["acted"] == {"terminate": 3}
    assert machines_of(site, run_id) == []
    assert any(f"no run is called '{run_id}'" in reason for reason in second["reasons"])


def test_observations_are_removed_when_what_was_suspect_is_gone(site: SimulatedSite) -> None:
    start_until(site, "training")
    lose_row(site)
    site.settle(GRACE_SECONDS)
    sweep(site)
    assert len(observations(site)) == 3
    site.settle(GRACE_SECONDS)
    sweep(site)
    site.settle(60)
    sweep(site)
    assert observations(site) == []


def test_a_row_that_appears_late_clears_the_suspicion(site: SimulatedSite) -> None:
    start_until(site, "training")
    row = only_run(site)
    site.cloud.runs.delete(row.run_id, "run", "run")
    site.settle(GRACE_SECONDS / 2)
    sweep(site)
    site.cloud.runs.insert(row.run_id, "run", "run", row.model_dump(mode="json"))
    sweep(site)
    assert observations(site) == []
    assert len(machines_of(site, row.run_id)) == 3


def test_r002_termination_is_tried_by_every_pass_until_the_machine_is_gone(site: SimulatedSite) -> None:
    start_until(site, "training")
    run_id = lose_row(site)
    site.settle(GRACE_SECONDS)
    site.fleets.deny_terminate(4 * GRACE_SECONDS)
    sweep(site)
    for _ in range(3):
        site.settle(GRACE_SECONDS)
        done = sweep(site)
        assert (done["failed"], len(machines_of(site, run_id))) == (3, 3)
        assert "TerminateDenied" in done["reasons"][-1]
    site.settle(GRACE_SECONDS)
    assert (sweep(site)["failed"], machines_of(site, run_id)) == (0, [])


def test_r003_a_run_whose_machines_boot_slowly_is_never_touched(site: SimulatedSite) -> None:
    arn = site.start(job())
    while site.cloud.executions.is_running(arn):
        site.settle(10)
        done = sweep(site)
        assert (done["acted"].get("terminate"), done["acted"].get("decommission")) == (None, None)
    assert receipt_of(site).status == "SUCCEEDED"


def test_r021_one_bad_machine_does_not_keep_the_others(site: SimulatedSite) -> None:
    start_until(site, "training")
    run_id = lose_row(site)
    site.settle(GRACE_SECONDS)
    bad = machines_of(site, run_id)[1]
    refuse_calls_with(site, bad)
    done = sweep_twice(site)
    assert machines_of(site, run_id) == [bad]
    assert done["failed"] == 1
    assert bad in done["reasons"][-1]


def refuse_calls_with(site: SimulatedSite, node_id: str) -> None:
    terminate: Callable[[Sequence[str]], tuple[str, ...]] = site.fleets.terminate

    def refusing(node_ids: Sequence[str]) -> tuple[str, ...]:
        if node_id in node_ids:
            raise ValueError(f"InvalidInstanceID.Malformed: {node_id}")
        return terminate(node_ids)

    site.fleets.terminate = refusing  # type: ignore[assignment,method-assign]


def test_both_fleets_of_two_runs_are_told_apart(site: SimulatedSite) -> None:
    first = start_until(site, "training")
    lost = only_run(site)
    site.cloud.executions.start("training_run", "second", job(name="other", max_hours=5.0))
    site.settle(20)
    site.cloud.executions.stop(first, "lost")
    live = next(run_id for run_id in site.cloud.runs.run_ids() if run_id != lost.run_id)
    site.settle(GRACE_SECONDS / 2)
    sweep(site)
    assert observations(site) == [f"run/{lost.run_id}"]
    site.settle(GRACE_SECONDS)
    sweep(site)
    site.settle()
    assert read_run(site.cloud, lost.run_id).status == "FAILED"
    assert read_run(site.cloud, live).status == "SUCCEEDED"


def test_r110_a_run_is_known_by_its_whole_id(site: SimulatedSite) -> None:
    start_until(site, "training")
    row = only_run(site)
    keep_training(site)
    ended = row.model_copy(update={"run_id": row.run_id[:-1], "ended_at": row.started_at})
    site.cloud.runs.insert(ended.run_id, "run", "run", ended.model_dump(mode="json"))
    key = f"runs/{row.run_id}/nodes/{nodes_of_run(site, row.run_id)[0]}/identity.json"
    sweep_twice(site)
    assert len(machines_of(site, row.run_id)) == 3
    assert site.objects.get(SETTINGS.run_bucket, key)


def nodes_of_run(site: SimulatedSite, run_id: str) -> list[str]:
    return [str(item["node_id"]) for item in site.cloud.runs.items(run_id, "node")]


def test_machines_that_outlive_their_report_are_terminated(site: SimulatedSite) -> None:
    row = lose_execution(site)
    site.cloud.runs.update(row.run_id, "run", "run", {"ended_at": to_text(site.cloud.clock.now())}, {})
    site.settle(GRACE_SECONDS / 2)
    assert sweep_twice(site)["found"]["run-ended"] == 3
    assert machines_of(site, row.run_id) == []


def test_a_row_that_cannot_be_read_stops_nothing_and_kills_nothing(site: SimulatedSite) -> None:
    start_until(site, "training")
    row = only_run(site)
    site.cloud.runs.update(row.run_id, "run", "run", {"from_the_future": 1}, {})
    done = sweep_twice(site)
    assert (done["acted"], done["failed"]) == ({}, 1)
    assert "cannot be read" in done["reasons"][0]
    assert len(machines_of(site, row.run_id)) == 3


def test_machines_are_listed_before_runs_are_read(site: SimulatedSite) -> None:
    """A machine that is launched between two reads must not look as if nobody owned it."""
    start_until(site, "training")
    calls: list[str] = []
    on_sweep.step({}, recorded(site.cloud, lambda line: calls.append(json.loads(line)["port"])))
    assert calls.index("fleets") == 0
    assert calls.count("fleets") == 1
    assert calls.index("runs") == 1


def test_r023_every_one_of_many_machines_is_seen_and_ended(site: SimulatedSite) -> None:
    count = 1_100
    request = LaunchRequest(
        run_id="nobodys-1",
        role="compute",
        attempt=1,
        count=count,
        instance_types=("c7i.large",),
        market="on-demand",
        region="us-east-1",
        client_token="many",
        deadline_at=START + timedelta(hours=5),
    )
    assert len(site.fleets.launch(request).nodes) == count
    site.settle(GRACE_SECONDS)
    assert sweep_twice(site)["acted"] == {"terminate": count}
    assert machines_of(site, "nobodys-1") == []
