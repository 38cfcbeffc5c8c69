"""The sweep and runs: lost ones are decommissioned and reported, those past a limit stopped, ended ones cleaned up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.domain.nodeconfig import Identity
from headrace.handlers._rows import read_run
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.local.simulated.watcher import Watcher
from tests.handlers.sweeps import (
    GRACE_SECONDS,
    lone_site,
    lose_execution,
    machines_of,
    sweep,
    sweep_twice,
)
from tests.simulated_runs import (
    ending_of,
    failing_function,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    start_until,
)


@pytest.fixture
def site() -> Iterator[SimulatedSite]:
    with lone_site() as opened:
        yield opened


def test_r005_a_run_whose_execution_is_gone_is_decommissioned_and_reported(site: SimulatedSite) -> None:
    lose_execution(site)
    done = sweep_twice(site)
    assert done["acted"] == {"decommission": 1}
    site.settle()
    assert receipt_of(site).status == "FAILED"
    assert "the sweep: ExecutionLost: its execution" in str(receipt_of(site).reason)
    assert machines_alive(site) == []


def test_a_run_lost_before_its_first_machine_is_reported_too(site: SimulatedSite) -> None:
    failing_function(site, "LaunchFleet", RuntimeError("never"))
    failing_function(site, "MarkTombstone", RuntimeError("never"))
    site.run(job())
    assert only_run(site).ended_at is None
    site.invoke = site.functions.invoke
    sweep_twice(site)
    site.settle()
    assert receipt_of(site).status == "FAILED"


def test_a_decommission_under_way_is_left_to_its_work(site: SimulatedSite) -> None:
    lose_execution(site)
    sweep_twice(site)
    assert sweep(site)["acted"] == {}
    assert sweep(site)["found"]["decommissioning"] >= 1


def test_a_decommission_that_died_is_started_again_and_machines_do_not_wait_for_it(site: SimulatedSite) -> None:
    failing_function(site, "TerminateNodes", RuntimeError("broken for good"))
    row = lose_execution(site)
    sweep_twice(site)
    started = str(read_run(site.cloud, row.run_id).decommission_arn)
    site.cloud.executions.stop(started, "it died")
    for _ in range(5):
        site.settle(GRACE_SECONDS)
        sweep(site)
    assert machines_of(site, row.run_id) == [], "the sweep itself terminates what is under a tombstone"
    assert read_run(site.cloud, row.run_id).decommission_arn != started
    site.invoke = site.functions.invoke
    sweep_twice(site)
    site.settle()
    assert receipt_of(site).status == "FAILED"


def test_a_decommission_that_gets_nowhere_is_helped_after_five_minutes(site: SimulatedSite) -> None:
    failing_function(site, "TerminateNodes", RuntimeError("broken for good"))
    row = lose_execution(site)
    for _ in range(7):
        sweep(site)
        site.settle(GRACE_SECONDS)
    assert machines_of(site, row.run_id) == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"deadline_at": "2026-01-01T00:00:01.000Z"}, "DeadlineExceeded"),
        ({"budget_usd": 0.0001}, "BudgetExceeded"),
    ],
)
def test_a_run_past_a_limit_that_cannot_end_itself_is_stopped_with_the_reason(
    site: SimulatedSite, changes: dict[str, Any], error: str
) -> None:
    hold_open(site)
    arn = start_until(site, "storage")
    row = only_run(site)
    site.cloud.runs.update(row.run_id, "run", "run", changes, {})
    assert sweep_twice(site)["acted"] == {"stop": 1}
    assert ending_of(site, arn).status == "ABORTED"
    assert str(only_run(site).failure).startswith(f"{error}: ")
    sweep_twice(site)
    site.settle()
    assert f"the sweep: {error}: " in str(receipt_of(site).reason)
    assert machines_alive(site) == []


def hold_open(site: SimulatedSite) -> None:
    """Let the run wait for machines that never are ready, so that no heartbeat holds it to its limits."""
    invoke = site.functions.invoke

    async def never_ready(name: str, payload: Any) -> Any:
        return {"verdict": "waiting"} if name == "CheckNodes" else await invoke(name, payload)

    site.invoke = never_ready


def test_keys_configurations_and_the_probe_of_an_ended_run_are_removed(site: SimulatedSite) -> None:
    site.run(job())
    row = only_run(site)
    lost = Identity(run_id=row.run_id, node_id="i-lost", attempt=1, hmac_key="00")
    for name in ("identity.json", "config.json"):
        site.objects.put(SETTINGS.run_bucket, f"{row.prefix}nodes/i-lost/{name}", lost.model_dump_json().encode())
    site.objects.put("out", f"small/{row.run_id}/.headrace-probe", b"")
    node = nodes_of(site)[0]
    site.cloud.runs.update(row.run_id, "node", node.node_id, {"key_deleted_at": None}, {})
    assert sweep(site)["acted"] == {"clean": 1}
    assert site.objects.page(SETTINGS.run_bucket, f"{row.prefix}nodes/").objects == ()
    assert [found.key for found in site.objects.page("out", "small/").objects if "probe" in found.key] == []
    assert all(one.key_deleted_at for one in nodes_of(site))
    assert sweep(site)["found"]["swept"] == 1, "what was cleaned once is not looked through again"


class Executed(Watcher):
    """Remembers which executions began or ended."""

    def __init__(self) -> None:
        self.arns: set[str] = set()

    def executed(self, execution_arn: str, _status: str) -> None:
        self.arns.add(execution_arn)


def test_r072_two_sweeps_at_once_do_what_one_does() -> None:
    plan, executed = FaultPlan([Fault("twin", "executions.start", 2)]), Executed()
    with lone_site(plan=plan, watcher=executed) as site:
        lose_execution(site)
        sweep(site)
        site.settle(GRACE_SECONDS)
        site.functions.attend("OnSweep", {}, ())
        assert plan.injected, "the second sweep ran inside of the first"
        site.settle()
        assert sum(":decommission:" in arn for arn in executed.arns) == 1
        assert receipt_of(site).status == "FAILED"
