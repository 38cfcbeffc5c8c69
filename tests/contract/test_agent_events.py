"""The agent's events are what the control plane takes: both implementations sign alike, every body fits its model."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.domain import events
from headrace.domain.event_bodies import BODIES, parse_body
from headrace.domain.lifecycle import TELEMETRY
from headrace_agent import outbox, signing
from headrace_agent.identity import Identity
from headrace_agent.outbox import Outbox
from headrace_agent.progress import body_of
from headrace_agent.reporter import Reporter
from headrace_agent.worker import ACTIVITIES
from tests.agent.conftest import bus, node, s3, s3_url
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import KEY_TEXT, S3, AgentNode, config, left_on, stage_part, train_part

__all__ = ["bus", "node", "s3", "s3_url"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
DETAIL_TYPES = st.sampled_from(get_args(events.DetailType))
KEYS = st.binary(min_size=32, max_size=32)


@settings(max_examples=300, print_blob=True)
@given(DETAIL_TYPES, st.dictionaries(st.text(max_size=8), JSON, max_size=6), KEYS)
def test_both_sides_give_any_detail_the_same_signature(detail_type: str, detail: dict[str, Any], key: bytes) -> None:
    signed = signing.sign(detail_type, detail, key)
    assert signed["hmac"] == events.signature(detail_type, signed, key)
    assert events.is_signed_by(detail_type, json.loads(json.dumps(signed)), key)
    assert not events.is_signed_by(detail_type, {**signed, "added": 1}, key)


@given(st.text(max_size=20), st.integers(1, 999), st.text(max_size=20), st.integers(1, 10**12), DETAIL_TYPES)
def test_both_sides_give_an_event_the_same_id(run: str, attempt: int, node_id: str, number: int, kind: str) -> None:
    assert signing.event_id(run, attempt, node_id, number, kind) == events.event_id(run, attempt, node_id, number, kind)


def test_both_sides_mean_the_same_source_and_the_same_telemetry() -> None:
    assert signing.SOURCE == events.SOURCE
    assert set(outbox.DROPPED_FIRST) == TELEMETRY
    assert set(ACTIVITIES.values()) == {"staging", "training", "salvaging"}


def _check(detail_type: str, detail: dict[str, Any]) -> None:
    events.EventDetail.model_validate(detail)
    parse_body(detail_type, detail["body"])
    assert events.is_signed_by(detail_type, detail, bytes.fromhex(KEY_TEXT))
    same = events.event_id(detail["run_id"], detail["attempt"], detail["node_id"], detail["sequence"], detail_type)
    assert detail["event_id"] == same
    assert len(json.dumps(detail)) <= events.MAX_EVENT_BYTES
    assert not any(isinstance(value, float) for value in detail["body"].values())


@given(st.dictionaries(st.text(max_size=300), st.floats() | st.text(max_size=3000) | JSON, max_size=40))
def test_whatever_a_job_reports_makes_an_event_that_is_taken(line: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = Outbox(Path(folder) / "outbox.sqlite3")
        Reporter(Identity("run-1", "node-a", 1, bytes.fromhex(KEY_TEXT)), box, lambda: None)(
            "Job Progress", body_of(line)
        )
        _check("Job Progress", json.loads(box.oldest(1)[0].detail))
        box.close()


@pytest.fixture
def lived(node: AgentNode, s3: S3, bus: FakeBus) -> FakeBus:
    """Return all events of a node that staged, failed to stage, trained well, trained badly and salvaged."""
    noisy = "import sys; sys.stdout.write('\\U0001f600\\x00\\x1b[31m' * 5000); sys.exit(9)"
    reports = "import os; open(os.environ['HEADRACE_PROGRESS'], 'w').write('{\"step\": 1, \"loss\": 0.1}\\n')"
    node.start()
    node.hand_in("stage", config(stage=stage_part(s3, {"a": b"a"})))
    bus.await_event("Dataset Staged")
    node.hand_in("stage", config(stage={"parts": ["absent"], "files": 1, "bytes": 1, "progress_seconds": 1}))
    bus.await_event("Dataset Failed")
    node.hand_in("train", config(train=train_part(command=[sys.executable, "-c", reports])))
    bus.await_event("Job Done")
    node.hand_in("train", config(train=train_part(command=[sys.executable, "-c", noisy])))
    bus.await_event("Job Failed")
    node.hand_in(
        "salvage",
        config(salvage={"left": [left_on("v5"), left_on("v5", subsystem_nqn="\x00")], "results_grace_seconds": 9}),
    )
    bus.await_event("Results Salvaged")
    assert node.terminate() == 0
    return bus


def test_every_event_of_a_real_agent_is_taken_and_every_kind_was_seen(lived: FakeBus) -> None:
    for detail_type, detail in lived.details:
        _check(detail_type, detail)
    assert set(lived.kinds) == set(BODIES)
