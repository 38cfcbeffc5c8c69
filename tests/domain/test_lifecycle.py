"""What an event changes on a node, and when nodes have finished, failed or gone silent."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.events import DetailType
from headrace.domain.instants import from_text, to_text
from headrace.domain.lifecycle import changes_for, has_reached, outcome, salvage_outcome, standing
from headrace.domain.run import NodeRow, NodeState
from tests.domain.rows import NOON, node_row

NOW = from_text(NOON)
WINDOW_SECONDS = 90
LONG_AGO = to_text(NOW - timedelta(hours=1))
JUST_NOW = to_text(NOW - timedelta(seconds=1))
BODY = {"activity": "training", "reason": "it broke", "files": 1, "bytes": 2}
ORDER = ["launched", "ready", "configured", "staged", "training", "done"]


def working(node_id: str = "i-1", **changes: object) -> NodeRow:
    """Return a compute node that was heard just now at its training."""
    return node_row(node_id, **{"state": "training", "activity": "training", "last_heard_at": JUST_NOW, **changes})


def verdict(workers: list[NodeRow], supporters: list[NodeRow], began_at: str = LONG_AGO) -> str:
    return outcome(workers, supporters, "training", began_at, NOW, WINDOW_SECONDS).verdict


@given(st.sampled_from(get_args(DetailType)), st.sampled_from(get_args(NodeState)), st.integers(1, 9))
def test_an_event_never_takes_a_node_back(detail_type: str, state: NodeState, sequence: int) -> None:
    node = node_row(state=state, last_sequence=5)
    after = node.model_copy(update=changes_for(node, detail_type, sequence, BODY, NOW))
    assert after.last_sequence >= node.last_sequence
    if state in ("done", "failed", "released"):
        assert after.state == state
    elif after.state != "failed":
        assert ORDER.index(after.state) >= ORDER.index(state)


@pytest.mark.parametrize("detail_type", ["Telemetry Sampled", "Dataset Progress", "Job Progress", "Results Progress"])
def test_telemetry_older_than_what_is_known_changes_nothing(detail_type: str) -> None:
    assert changes_for(node_row(last_sequence=5), detail_type, 5, BODY, NOW) == {}


def test_a_late_lifecycle_event_still_counts() -> None:
    changes = changes_for(node_row(state="training", last_sequence=50), "Job Done", 7, {"manifest": "m"}, NOW)
    assert (changes["state"], changes["last_sequence"]) == ("done", 50)


def test_what_comes_after_later_words_is_no_sign_of_life() -> None:
    late = changes_for(node_row(state="training", last_sequence=50), "Job Started", 7, BODY, NOW)
    assert "last_heard_at" not in late


def test_heartbeats_count_by_the_control_planes_clock() -> None:
    changes = changes_for(node_row(), "Telemetry Sampled", 1, BODY, NOW)
    assert (changes["last_heard_at"], changes["activity"]) == (NOON, "training")


@pytest.mark.parametrize("state", ["failed", "released", "done"])
def test_a_goodbye_does_not_hide_why_a_node_failed_or_that_it_was_done(state: NodeState) -> None:
    node = node_row(state=state, failure="exit code 1")
    assert "failure" not in changes_for(node, "Node Leaving", 9, {"reason": "told to stop"}, NOW)


def test_a_failed_node_has_reached_nothing() -> None:
    assert not has_reached(node_row(state="failed"), "launched")
    assert has_reached(node_row(state="training"), "staged")


def test_standing_leaves_out_what_was_released_and_orders_by_place() -> None:
    nodes = [node_row("b", index=1), node_row("a", index=0), node_row("c", index=2, released_at=NOON)]
    assert [one.node_id for one in standing(nodes, "compute")] == ["a", "b"]


def test_all_workers_done_is_finished_whoever_is_silent() -> None:
    assert verdict([working(state="done"), working("i-2", state="done", last_heard_at=LONG_AGO)], []) == "finished"


def test_one_worker_short_of_done_is_not_finished() -> None:
    assert verdict([working(state="done"), working("i-2")], []) == "alive"


def test_no_workers_at_all_is_never_finished() -> None:
    assert verdict([], []) != "finished"


def test_a_failed_worker_fails_the_task_with_its_reason() -> None:
    result = outcome([working(state="failed", failure="exit code 1")], [], "training", NOON, NOW, WINDOW_SECONDS)
    assert (result.verdict, result.error) == ("failed", "JobFailed")
    assert "exit code 1" in result.cause


def test_a_failed_supporter_is_a_lost_node() -> None:
    gone = node_row("i-9", role="storage", state="failed", failure="spot interruption")
    result = outcome([working()], [gone], "training", NOON, NOW, WINDOW_SECONDS)
    assert (result.verdict, result.error) == ("failed", "NodeLost")


def test_a_silent_worker_or_supporter_is_not_vouched_for() -> None:
    storage = node_row("i-9", role="storage", last_heard_at=JUST_NOW)
    assert verdict([working()], [storage]) == "alive"
    assert verdict([working(last_heard_at=LONG_AGO)], [storage]) == "silent"
    assert verdict([working()], [storage.model_copy(update={"last_heard_at": None})]) == "silent"


def test_an_idle_worker_is_vouched_for_only_while_the_phase_is_young() -> None:
    idle = working(state="configured", activity="idle")
    assert verdict([idle], [], began_at=JUST_NOW) == "alive"
    assert verdict([idle], []) == "silent"


def saving(node_id: str, **changes: object) -> NodeRow:
    """Return a storage node that was heard just now at saving what others left."""
    return working(node_id, role="storage", **{"state": "staged", "activity": "salvaging", **changes})


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([saving("s0"), saving("s1", state="done")], "alive"),
        ([saving("s0", state="done"), saving("s1", state="done")], "finished"),
        ([saving("s0", state="done"), saving("s1", state="failed")], "finished"),
        ([saving("s0", state="done"), saving("s1", last_heard_at=LONG_AGO)], "finished"),
        ([saving("s0"), saving("s1", state="failed")], "alive"),
        ([saving("s0", activity="idle"), saving("s1", state="done")], "silent"),
        ([], "finished"),
    ],
)
def test_a_salvage_waits_for_the_storage_nodes_that_live(nodes: list[NodeRow], expected: str) -> None:
    assert salvage_outcome(nodes, LONG_AGO, NOW, WINDOW_SECONDS).verdict == expected


def test_a_node_that_saved_what_others_left_says_how_much() -> None:
    body = {"ranks": [1], "files": 1, "bytes": 2}
    changes = changes_for(saving("s0"), "Results Salvaged", 7, body, NOW)
    assert (changes["state"], changes["salvaged"]) == ("done", body)
