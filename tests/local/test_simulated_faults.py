"""The fault layer: planned faults strike the calls they name, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.domain.errors import AccessDenied
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.fault_table import TABLE, draw_faults
from headrace.local.simulated.faulty import faulty
from headrace.local.simulated.fleet_faults import fleet_effects
from headrace.local.simulated.port_faults import Killed, ServiceFailed, Throttled, generic_effects
from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import job, machines_alive, only_run, prices, start_until


def site_with(*faults: str) -> SimulatedSite:
    """Return a site on which these faults are planned, with a data set."""
    site = SimulatedSite(7, prices(), plan=FaultPlan(map(Fault.parse, faults)))
    for name in ("one", "two", "three", "four"):
        site.objects.put("data", f"set/{name}.bin", name.encode())
    return site


def test_only_the_call_that_is_named_goes_wrong() -> None:
    site = site_with("denied@objects.head#2")
    site.cloud.objects.put("b", "k", b"1")
    assert site.cloud.objects.head("b", "k").bytes == 1
    with pytest.raises(AccessDenied):
        site.cloud.objects.head("b", "k")
    assert site.cloud.objects.head("b", "k").bytes == 1
    assert [str(fault) for fault in site.plan.injected] == ["denied@objects.head#2"]
    site.close()


@pytest.mark.parametrize(
    ("kind", "error", "is_done"),
    [
        ("error_before", ServiceFailed, False),
        ("error_after", ServiceFailed, True),
        ("killed_before", Killed, False),
        ("killed_after", Killed, True),
    ],
)
def test_a_call_fails_before_or_after_its_effect(kind: str, error: type[BaseException], is_done: bool) -> None:
    site = site_with(f"{kind}@runs.insert#1")
    with pytest.raises(error):
        site.cloud.runs.insert("run", "kind", "name", {})
    assert (site.cloud.runs.read("run", "kind", "name") is not None) is is_done
    site.close()


def test_the_sdk_takes_a_bounded_number_of_throttled_answers() -> None:
    site = site_with("throttled@runs.insert#1=4", "throttled@runs.insert#2=5")
    assert site.cloud.runs.insert("run", "kind", "one", {})
    with pytest.raises(Throttled):
        site.cloud.runs.insert("run", "kind", "two", {})
    site.close()


def test_a_conditional_write_that_is_sent_twice_says_no_though_it_was_made() -> None:
    site = site_with("sent_twice@runs.insert#1")
    assert not site.cloud.runs.insert("run", "kind", "name", {"a": 1})
    assert site.cloud.runs.read("run", "kind", "name") == {"a": 1}
    site.close()


def test_an_outage_holds_functions_and_timers_but_no_machine() -> None:
    """R035, R146: the control plane is dead for hours; machines go on, and end themselves."""
    site = site_with("outage@control#1=180~100s")
    arn = site.start(job())
    site.settle(101)
    count = len(site.interpreter.history(arn))
    heard = len(site.events)
    site.settle(3000)
    assert len(site.interpreter.history(arn)) == count
    assert len(site.events) > heard
    site.settle(8000)
    assert len(site.interpreter.history(arn)) > count
    site.close()


def test_forged_events_change_nothing() -> None:
    """R079: a forged job-done is rejected."""
    site = site_with("forged@event.Node Ready#1")
    assert site.run(job()).status == "SUCCEEDED"
    site.close()


def test_a_run_that_is_stopped_between_two_calls_ends_with_nothing_running() -> None:
    site = site_with("overtaken@fleets.launch#1")
    site.run(job())
    assert only_run(site).status == "STOPPED"
    assert machines_alive(site) == []
    site.close()


def test_an_agent_that_was_restarted_goes_on_with_its_staging() -> None:
    site = site_with("restart@machine#1~70s")
    assert site.run(job()).status == "SUCCEEDED"
    site.close()


def test_a_spot_notice_is_heard_before_the_machine_is_gone() -> None:
    """R033: a loss is noticed long before the job's own time is over."""
    site = site_with("spot@machine#3=1~90s")
    site.run(job())
    assert "spot interruption" in str(only_run(site).failure)
    site.close()


def test_a_function_that_stands_still_goes_on_after_its_execution_was_stopped() -> None:
    """Lambda does not end an invocation because Step Functions no longer waits for it."""
    just_before_the_launch = 9
    site = site_with(f"paused@invoke.LaunchFleet#1={just_before_the_launch}~50s", "stop@control#1~1s")
    site.run(job())
    assert len(site.fleets.machines) == 2
    assert machines_alive(site) == []
    assert only_run(site).status == "STOPPED"
    site.close()


def test_an_event_whose_handler_dies_in_its_midst_is_handled_again() -> None:
    site = site_with("dies@event.Job Done#1=5")
    assert site.run(job()).status == "SUCCEEDED"
    assert site.plan.injected
    site.close()


@pytest.mark.parametrize("kind", ["undeliverable", "delivery_timed_out"])
def test_a_machine_that_its_document_does_not_reach_is_replaced(kind: str) -> None:
    site = site_with(f"{kind}@nodes.send#1~60s")
    assert site.run(job()).status == "SUCCEEDED"
    assert len(site.fleets.machines) == 4
    site.close()


def test_a_machine_may_go_on_for_minutes_after_it_was_told_to_end() -> None:
    """Asking once more, as every confirmation does, does not hurry it."""
    site = site_with("slow_to_go@fleets.terminate#1~240s")
    arn = start_until(site, "ending")
    site.settle(60)
    assert len(machines_alive(site)) == 1
    site.settle(300)
    assert machines_alive(site) == []
    assert site.interpreter.describe_execution(arn).status == "SUCCEEDED"
    site.close()


@pytest.mark.parametrize(
    ("fault", "machines", "reason"),
    [
        ("archived@bucket#1", 0, "is archived (GLACIER)"),
        ("archived@bucket#1~1s", 2, "it is archived"),
        ("changed@bucket#1~1s", 2, "it changed since it was listed"),
        ("removed@bucket#1~1s", 2, "it is no longer there"),
        ("full_disk@machine#1", 2, "No space left on device"),
        ("full_disk@machine#3", 3, "No space left on device"),
        ("half_upload@machine#3", 3, "the agent died while the job ran"),
        ("damaged@machine#3=0", 3, "is missing"),
        ("damaged@machine#3=1", 3, "has 14 bytes"),
        ("damaged@machine#3=2", 3, "has 15 bytes and ETag"),
    ],
)
def test_what_befalls_data_and_disks_ends_the_run_and_is_its_reason(fault: str, machines: int, reason: str) -> None:
    site = site_with(fault)
    site.run(job())
    assert reason in str(only_run(site).failure)
    assert only_run(site).status == "FAILED"
    assert len(site.fleets.machines) == machines
    assert machines_alive(site) == []
    site.close()


def test_a_bus_that_delivers_everything_twice_changes_nothing() -> None:
    site = site_with("echoed@control#1~20s")
    assert site.run(job()).status == "SUCCEEDED"
    site.close()


def test_every_effect_of_the_table_is_there_for_its_port() -> None:
    site = SimulatedSite(7, prices())
    effects = generic_effects(site.functions) | fleet_effects(site.fleets, site.nodes)
    ports = ("fleets", "nodes", "objects", "bus", "runs", "executions")
    kinds = {row.kind for row in TABLE for where in row.places if where.partition(".")[0] in ports}
    assert kinds <= set(effects)
    site.close()


def test_draws_are_those_of_the_seed_and_about_as_many_as_asked() -> None:
    drawn = [draw_faults(Random(seed), 3.0) for seed in range(400)]  # noqa: S311 - a seed is the point
    assert drawn == [draw_faults(Random(seed), 3.0) for seed in range(400)]  # noqa: S311 - the same
    assert 2.4 < sum(map(len, drawn)) / 400 < 3.6


def test_ports_without_faults_are_the_ports_themselves() -> None:
    site = SimulatedSite(7, prices())
    struck = faulty(site.cloud, FaultPlan([Fault("denied", "objects.get")]), {}, lambda _actor, _what: None)
    assert struck.runs is site.cloud.runs
    assert struck.objects is not site.cloud.objects
    assert replace(struck, objects=site.cloud.objects) == site.cloud
    site.close()


def test_a_text_that_names_no_fault_is_refused() -> None:
    with pytest.raises(ValueError, match="kind@where#nth"):
        Fault.parse("something went wrong")


def test_a_phase_can_be_struck_by_time_as_well() -> None:
    site = site_with("stop@control#1~150s")
    start_until(site, "training")
    assert site.run(job(name="other"), "other").status == "ABORTED"
    site.close()
