"""Events of EC2 itself: they tell sooner what polling would find, and nothing that is not so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.instance_events import ENDING, INTERRUPTION, REBALANCE, STATE, WARNINGS, read_instance_event
from headrace.domain.nodeconfig import Notice
from headrace.domain.run import NodeRow
from headrace.handlers import check_nodes, on_instance_event
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import NodeLife
from infra.rules import INSTANCE_ENDS, INSTANCE_WARNINGS
from tests.simulated_runs import ending_of, nodes_of, only_run, receipt_of, simulated_site, start_until


def event(node_id: str, detail_type: str = STATE, event_id: str = "e-1", **detail: Any) -> dict[str, Any]:
    given = {"instance-id": node_id, **({"state": "terminated"} if detail_type == STATE else {}), **detail}
    return {"id": event_id, "source": "aws.ec2", "detail-type": detail_type, "detail": given}


def a_node(site: SimulatedSite, role: str = "compute") -> NodeRow:
    return next(node for node in nodes_of(site) if node.role == role)


def show(site: SimulatedSite, node: NodeRow, life: NodeLife, because: str = "") -> None:
    """Have listings show the machine so, without a word from the cloud."""
    machine = site.fleets.machines[node.node_id]
    machine.node = replace(machine.node, life=life, ended_because=because)


def state_of(site: SimulatedSite) -> str:
    rows = [only_run(site).model_dump(), *(node.model_dump() for node in nodes_of(site))]
    return json.dumps(
        [rows, site.cloud.executions.is_running(only_run(site).execution_arn), list(site.objects.keys(""))]
    )


def assert_unmoved(site: SimulatedSite, envelope: dict[str, Any]) -> None:
    before = state_of(site)
    assert not on_instance_event.step(envelope, site.cloud)["applied"]
    site.settle(1)
    assert state_of(site) == before


def test_the_end_of_a_machine_is_learnt_at_once_and_ends_the_run_that_needs_it(training: SimulatedSite) -> None:
    node = a_node(training)
    show(training, node, "terminated", "Server.SpotInstanceTermination")
    assert on_instance_event.step(event(node.node_id), training.cloud)["applied"]
    assert a_node(training).failure == "the machine is terminated (Server.SpotInstanceTermination)"
    ended = ending_of(training, only_run(training).execution_arn)
    assert ended.status == "FAILED"
    assert "SpotInstanceTermination" in str(receipt_of(training).reason)


@pytest.mark.parametrize("role", ["storage", "compute"])
def test_no_heartbeat_is_waited_for(training: SimulatedSite, role: str) -> None:
    node = a_node(training, role)
    show(training, node, "stopping")
    on_instance_event.step(event(node.node_id, state="shutting-down"), training.cloud)
    training.settle(5)
    assert only_run(training).tombstone_at, "the run is being ended"


def test_the_same_event_again_has_no_second_effect(training: SimulatedSite) -> None:
    node = a_node(training)
    show(training, node, "terminated")
    on_instance_event.step(event(node.node_id), training.cloud)
    training.settle(5)
    assert_unmoved(training, event(node.node_id))


def test_an_effect_that_was_cut_short_is_made_up_for(training: SimulatedSite) -> None:
    node = a_node(training)
    show(training, node, "terminated")
    training.cloud.runs.update(node.run_id, "node", node.node_id, {"state": "failed", "failure": "it left"}, {})
    assert on_instance_event.step(event(node.node_id), training.cloud)["applied"]
    training.settle(5)
    assert only_run(training).tombstone_at
    assert a_node(training).failure == "it left", "what the agent said stands"


def test_an_event_that_the_listing_does_not_confirm_changes_nothing(training: SimulatedSite) -> None:
    assert_unmoved(training, event(a_node(training).node_id))


def test_an_event_of_a_foreign_machine_changes_nothing(training: SimulatedSite) -> None:
    assert_unmoved(training, event("i-0123456789abcdef0"))


def test_the_end_of_a_machine_whose_work_is_done_changes_nothing(training: SimulatedSite) -> None:
    node = a_node(training)
    training.cloud.runs.update(node.run_id, "node", node.node_id, {"state": "done"}, {})
    show(training, node, "terminated")
    assert_unmoved(training, event(node.node_id))


@pytest.mark.parametrize("field", ["tombstone_at", "ended_at"])
def test_the_end_of_a_machine_whose_run_is_being_ended_changes_nothing(training: SimulatedSite, field: str) -> None:
    node = a_node(training)
    training.cloud.runs.update(node.run_id, "run", "run", {field: "2026-01-01T00:10:00.000Z"}, {})
    show(training, node, "terminated")
    assert_unmoved(training, event(node.node_id))


def test_a_machine_without_a_row_is_left_to_whoever_launches_it(training: SimulatedSite) -> None:
    node = a_node(training)
    show(training, node, "terminated")
    training.cloud.runs.delete(node.run_id, "node", node.node_id)
    assert_unmoved(training, event(node.node_id))


def test_a_fleet_that_comes_up_replaces_the_machine_at_its_next_look() -> None:
    with simulated_site() as site:
        start_until(site, "storage")
        node = a_node(site, "storage")
        show(site, node, "terminated", "Server.InternalError")
        assert on_instance_event.step(event(node.node_id), site.cloud)["applied"]
        site.fleets.machines.pop(node.node_id)
        order = {"run_id": node.run_id, "role": "storage", "attempt": 1}
        assert check_nodes.step(order, site.cloud) == {"verdict": "replace"}


@pytest.mark.parametrize("kind", [INTERRUPTION, REBALANCE])
@pytest.mark.parametrize("role", ["storage", "compute"])
def test_a_warning_asks_every_job_for_a_checkpoint_and_ends_nothing(
    training: SimulatedSite, kind: str, role: str
) -> None:
    warned = event(a_node(training, role).node_id, kind)
    assert on_instance_event.step(warned, training.cloud)["applied"]
    name = f"{only_run(training).prefix}nodes/{a_node(training).node_id}/notice.json"
    notice = Notice.model_validate_json(training.objects.get(SETTINGS.run_bucket, name))
    assert (notice.because, notice.seconds_left) == (WARNINGS[kind].format(a_node(training, role).node_id), 120)
    assert_unmoved(training, warned)
    assert only_run(training).tombstone_at is None


def test_a_fleet_that_is_taken_back_at_once_warns_its_jobs_once(training: SimulatedSite) -> None:
    first, second = (event(node.node_id, INTERRUPTION, f"e-{node.node_id}") for node in nodes_of(training)[:2])
    assert on_instance_event.step(first, training.cloud)["applied"]
    assert_unmoved(training, second)
    training.settle(60)
    assert on_instance_event.step(second, training.cloud)["applied"]


def test_a_warning_that_was_cut_short_is_told_again(training: SimulatedSite) -> None:
    node = a_node(training)
    training.cloud.runs.insert(node.run_id, "event", "e-1", {"is_applied": False})
    assert on_instance_event.step(event(node.node_id, INTERRUPTION), training.cloud)["applied"]


def test_a_warning_before_anything_trains_changes_nothing() -> None:
    with simulated_site() as site:
        start_until(site, "storage")
        assert_unmoved(site, event(a_node(site, "storage").node_id, INTERRUPTION))


@pytest.mark.parametrize(
    "envelope",
    [
        {},
        {"source": "aws.ec2"},
        {**event("i-1"), "source": "somebody.else"},
        {**event("i-1"), "detail": "text"},
        {**event("i-1"), "detail": {"state": "terminated"}},
        event("i-1", state="running"),
        event("i-1", "EC2 Fleet Error"),
        event(""),
    ],
)
def test_what_says_nothing_of_a_machines_end_is_no_event(envelope: dict[str, Any]) -> None:
    assert read_instance_event(envelope) is None


def test_the_rules_take_what_the_handler_understands() -> None:
    assert set(INSTANCE_ENDS) == ENDING
    assert set(INSTANCE_WARNINGS) == set(WARNINGS)
