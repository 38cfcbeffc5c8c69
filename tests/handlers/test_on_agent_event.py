"""Events of agents: only a signed, addressed, timely one changes anything, and each changes it once."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from headrace.domain.errors import EventRefused
from headrace.domain.events import SOURCE, event_id, signature
from headrace.domain.nodeconfig import Identity
from headrace.domain.run import NodeRow
from headrace.handlers import on_agent_event
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import SEED, nodes_of, only_run

DONE = {"manifest": "results/x/manifest.json", "files": 1, "bytes": 1}
BEAT = {"activity": "training", "agent_resident_bytes": 1, "outbox_depth": 0}


def compute_node(site: SimulatedSite) -> NodeRow:
    return next(node for node in nodes_of(site) if node.role == "compute")


def envelope(
    site: SimulatedSite, detail_type: str, body: dict[str, Any], sequence: int = 1000, **changes: Any
) -> dict[str, Any]:
    """Return a rightly signed event of the compute node, with details changed before it is signed."""
    node = compute_node(site)
    detail: dict[str, Any] = {
        "version": 1,
        "event_id": event_id(node.run_id, node.attempt, node.node_id, sequence, detail_type),
        "run_id": node.run_id,
        "attempt": node.attempt,
        "node_id": node.node_id,
        "sequence": sequence,
        "sent_at": "2026-01-01T00:03:00.000Z",
        "body": body,
    }
    detail.update(changes)
    detail["hmac"] = signature(detail_type, detail, key_of(site, node))
    return {"source": SOURCE, "detail-type": detail_type, "detail": detail}


def key_of(site: SimulatedSite, node: NodeRow) -> bytes:
    name = f"{only_run(site).prefix}nodes/{node.node_id}/identity.json"
    return bytes.fromhex(Identity.model_validate_json(site.objects.get(SETTINGS.run_bucket, name)).hmac_key)


def state_of(site: SimulatedSite) -> str:
    """Return all that an event could change, as text."""
    rows = [only_run(site).model_dump(), *(node.model_dump() for node in nodes_of(site))]
    return json.dumps([rows, site.cloud.executions.is_running(only_run(site).execution_arn)])


def assert_refused(site: SimulatedSite, event: dict[str, Any], why: str) -> None:
    before = state_of(site)
    with pytest.raises(EventRefused, match=why):
        on_agent_event.step(event, site.cloud)
    assert state_of(site) == before


def test_a_signed_event_moves_the_node_and_completes_the_task(training: SimulatedSite) -> None:
    assert on_agent_event.step(envelope(training, "Job Done", DONE), training.cloud) == {"applied": True}
    assert compute_node(training).state == "done"
    assert only_run(training).job_done_at is not None


def test_the_same_event_again_changes_nothing(training: SimulatedSite) -> None:
    event = envelope(training, "Job Done", DONE)
    on_agent_event.step(event, training.cloud)
    before = state_of(training)
    assert on_agent_event.step(event, training.cloud) == {"applied": False}
    assert state_of(training) == before


def test_an_event_whose_effect_was_cut_short_is_applied_when_it_comes_again(training: SimulatedSite) -> None:
    event = envelope(training, "Job Done", DONE)
    detail = event["detail"]
    training.cloud.runs.insert(detail["run_id"], "event", detail["event_id"], {"is_applied": False})
    assert on_agent_event.step(event, training.cloud) == {"applied": True}
    assert compute_node(training).state == "done"


def test_a_heartbeat_older_than_the_last_changes_nothing(training: SimulatedSite) -> None:
    on_agent_event.step(envelope(training, "Telemetry Sampled", BEAT, sequence=2000), training.cloud)
    before = state_of(training)
    on_agent_event.step(envelope(training, "Telemetry Sampled", BEAT, sequence=1999), training.cloud)
    assert state_of(training) == before


def test_a_forged_signature_is_refused(training: SimulatedSite) -> None:
    event = envelope(training, "Job Done", DONE)
    event["detail"]["hmac"] = "0" * 64
    assert_refused(training, event, "signature is not that of")


def test_an_event_under_another_type_than_it_was_signed_for_is_refused(training: SimulatedSite) -> None:
    event = envelope(training, "Job Failed", {"reason": "no"})
    event["detail"]["body"] = DONE
    event["detail-type"] = "Job Done"
    assert_refused(training, event, "signature is not that of")


@pytest.mark.parametrize("changes", [{"node_id": "i-000"}, {"run_id": "another-run"}, {"attempt": 2}])
def test_an_event_of_a_foreign_node_run_or_attempt_is_refused(training: SimulatedSite, changes: dict[str, Any]) -> None:
    assert_refused(training, envelope(training, "Job Done", DONE, **changes), "has no node")


def test_one_nodes_key_does_not_sign_for_another(training: SimulatedSite) -> None:
    storage = next(node for node in nodes_of(training) if node.role == "storage")
    assert_refused(training, envelope(training, "Job Done", DONE, node_id=storage.node_id), "signature is not that of")


def test_an_event_after_the_keys_were_deleted_is_refused(training: SimulatedSite) -> None:
    event = envelope(training, "Job Done", DONE)
    name = f"{only_run(training).prefix}nodes/{compute_node(training).node_id}/identity.json"
    training.objects.delete(SETTINGS.run_bucket, name)
    assert_refused(training, event, "key of node .* was deleted")


def test_an_event_after_the_end_is_refused(training: SimulatedSite) -> None:
    event = envelope(training, "Job Done", DONE)
    training.cloud.runs.update(only_run(training).run_id, "run", "run", {"ended_at": "2026-01-01T01:00:00Z"}, {})
    assert_refused(training, event, "ended at")


@pytest.mark.parametrize("source", ["headrace.run", "aws.ec2", None])
def test_another_source_is_refused(training: SimulatedSite, source: str | None) -> None:
    assert_refused(training, {**envelope(training, "Job Done", DONE), "source": source}, "not an event of an agent")


def test_an_oversize_detail_is_refused(training: SimulatedSite) -> None:
    assert_refused(training, envelope(training, "Job Failed", {"reason": "x" * 20_000}), "more than 16384")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@seed(SEED)
@given(data=st.data())
def test_any_change_of_a_signed_detail_is_refused(training: SimulatedSite, data: st.DataObject) -> None:
    event = copy.deepcopy(envelope(training, "Job Done", DONE, sequence=5000))
    detail = event["detail"]
    field = data.draw(st.sampled_from(sorted(detail)))
    other = data.draw(st.one_of(st.integers(), st.text(), st.none(), st.just({}), st.floats(), st.booleans()))
    if other == detail[field]:
        return
    detail[field] = other
    before = state_of(training)
    with pytest.raises(EventRefused):
        on_agent_event.step(event, training.cloud)
    assert state_of(training) == before
