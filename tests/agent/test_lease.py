"""When a node leaves by itself: at its deadline always, after a while without work and control plane, never before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from headrace_agent.fields import ConfigError
from headrace_agent.lease import Lease
from headrace_agent.lease_reader import LeaseReader
from headrace_agent.node import load_node
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    NODE_ID,
    PREFIX,
    RUN_BUCKET,
    S3,
    AgentNode,
    await_true,
    config,
    python,
    train_part,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEADLINE = NOON + timedelta(hours=5)
IDLE_SECONDS = 100.0


class Node:
    """A node whose time the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.serves = False
        self.asked = 0
        self.clock_error = timedelta(0)
        self.lease = Lease(DEADLINE, IDLE_SECONDS, monotonic=lambda: self.seconds)

    def hear(self, deadline_at: datetime = DEADLINE) -> None:
        renewed_at = NOON + timedelta(seconds=self.seconds)
        text = json.dumps({"deadline_at": deadline_at.isoformat(), "renewed_at": renewed_at.isoformat()})
        self.lease.take(text.encode(), has_identity=True)

    def reason(self, *, is_working: bool = False) -> str:
        def is_serving() -> bool:
            self.asked += 1
            return self.serves

        now = NOON + timedelta(seconds=self.seconds) + self.clock_error
        return self.lease.reason_to_leave(now, is_working=is_working, is_serving=is_serving)


def test_without_work_and_without_a_sign_of_the_control_plane_a_node_goes_after_its_lease() -> None:
    node = Node()
    node.seconds = 99
    assert node.reason() == ""
    node.seconds = 100
    assert node.reason() == "no work, and the control plane was not heard for 100 s"


def test_a_renewed_lease_keeps_a_node() -> None:
    node = Node()
    for _ in range(20):
        node.seconds += 90
        node.hear()
        assert node.reason() == ""


def test_the_same_lease_read_again_is_no_sign_of_life() -> None:
    node = Node()
    text = lease_text(DEADLINE).encode()
    for _ in range(2):
        node.lease.take(text, has_identity=True)
        node.seconds += 60
    assert "was not heard" in node.reason()


def test_a_node_that_works_stays_however_long_nothing_is_heard_and_has_a_whole_lease_afterwards() -> None:
    node = Node()
    for _ in range(50):
        node.seconds += 90
        assert node.reason(is_working=True) == ""
    node.seconds += 99
    assert node.reason() == "", "what it has to say about its work must get through first"
    node.seconds += 1
    assert "was not heard" in node.reason()


def test_a_node_that_serves_a_job_elsewhere_stays() -> None:
    node = Node()
    node.serves = True
    for _ in range(10):
        node.seconds += 100
        assert node.reason() == ""
    node.serves = False
    node.seconds += 100
    assert "was not heard" in node.reason()


def test_whether_it_serves_is_asked_only_when_nothing_else_keeps_the_node() -> None:
    node = Node()
    for node.seconds in range(100):
        node.reason()
    assert node.asked == 0


@pytest.mark.parametrize("is_working", [True, False])
def test_at_its_deadline_a_node_goes_whatever_it_does(*, is_working: bool) -> None:
    node = Node()
    node.seconds = timedelta(hours=5).total_seconds() - 1
    node.hear()
    assert node.reason(is_working=is_working) == ""
    node.seconds += 1
    assert node.reason(is_working=is_working) == f"the deadline {DEADLINE.isoformat()} has passed"


@pytest.mark.parametrize("minutes_off", [-20, 20])
def test_a_clock_that_is_wrong_moves_no_end_that_a_lease_sets(minutes_off: int) -> None:
    node = Node()
    node.clock_error = timedelta(minutes=minutes_off)
    node.hear(NOON + timedelta(minutes=10))
    node.seconds = 599
    assert node.reason(is_working=True) == ""
    node.seconds = 600
    assert "has passed" in node.reason(is_working=True)


def test_a_lease_brings_the_deadline_forward_and_back_and_never_past_that_of_the_launch() -> None:
    node = Node()
    node.hear(NOON + timedelta(hours=1))
    assert node.lease.deadline_at == NOON + timedelta(hours=1)
    node.seconds = 1
    node.hear(NOON + timedelta(hours=3))
    assert node.lease.deadline_at == NOON + timedelta(hours=3)
    node.seconds = 2
    node.hear(NOON + timedelta(days=300))
    assert node.lease.deadline_at == DEADLINE


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"deadline_at": 5}',
        b'{"deadline_at": "soon"}',
        b'{"deadline_at": "2026-01-01T12:00:00Z"}',
        b"\xff",
    ],
)
def test_a_malformed_lease_changes_nothing(text: bytes) -> None:
    node = Node()
    node.seconds = 100
    with pytest.raises(ConfigError, match=r"lease\.json"):
        node.lease.take(text, has_identity=True)
    assert node.lease.deadline_at == DEADLINE
    assert "was not heard" in node.reason()


def test_a_node_whose_identity_was_deleted_goes_although_leases_were_renewed() -> None:
    node = Node()
    node.hear()
    node.lease.take(None, has_identity=False)
    node.seconds = 60
    node.lease.take(None, has_identity=False)
    assert node.reason() == ""
    node.seconds = 100
    assert "no work" in node.reason()


def test_an_identity_that_is_back_is_no_reason_to_go() -> None:
    node = Node()
    node.lease.take(None, has_identity=False)
    node.seconds = 90
    node.hear()
    node.seconds = 150
    assert node.reason() == ""


def lease_text(deadline_at: datetime, renewed_at: datetime = NOON) -> str:
    return json.dumps({"deadline_at": deadline_at.isoformat(), "renewed_at": renewed_at.isoformat()})


def test_the_reader_reads_the_nodes_own_lease(node: AgentNode, s3: S3) -> None:
    node.write_node_file()
    described = load_node(node.environment)
    lease = Lease(described.deadline_at, 100)
    reader = LeaseReader(described, lease)
    reader.look()
    earlier = described.deadline_at - timedelta(minutes=5)
    s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/lease.json", lease_text(earlier))
    reader.look()
    assert lease.deadline_at == earlier
    s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/lease.json", "broken")
    reader.look()
    assert lease.deadline_at == earlier


def test_a_storage_that_cannot_be_reached_is_neither_a_sign_of_life_nor_of_an_end(
    node: AgentNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.write_node_file()
    described = load_node(node.environment)
    seconds = [0.0]
    lease = Lease(described.deadline_at, 100, monotonic=lambda: seconds[0])
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    LeaseReader(described, lease).look()
    seconds[0] = 100
    reason = lease.reason_to_leave(NOON, is_working=False, is_serving=lambda: False)
    assert reason == "no work, and the control plane was not heard for 100 s"


def test_an_idle_agent_that_hears_nothing_leaves_and_says_why(node: AgentNode, bus: FakeBus) -> None:
    node.idle_lease_seconds = 1.5
    node.start()
    assert node.process
    assert node.process.wait(40) == 0
    assert bus.bodies("Node Leaving") == [{"reason": "no work, and the control plane was not heard for 1.5 s"}]
    assert node.processes() == []


def test_an_agent_that_gets_no_identity_leaves(node: AgentNode, bus: FakeBus) -> None:
    node.idle_lease_seconds = 1.0
    node.write_node_file()
    node.start_without_identity()
    assert node.process
    assert node.process.wait(40) == 0
    assert bus.kinds == []


def test_an_agent_whose_job_runs_stays_though_it_hears_nothing(node: AgentNode, bus: FakeBus) -> None:
    node.idle_lease_seconds = 0.5
    node.write_node_file()
    node.hand_in("train", config(train=train_part(command=python("import time; time.sleep(1.5)"))))
    node.start()
    bus.await_event("Job Done")
    assert "Node Leaving" not in bus.kinds[: bus.kinds.index("Job Done")]
    assert node.process
    assert node.process.wait(40) == 0
    assert bus.kinds[-1] == "Node Leaving"


def test_a_shorter_deadline_in_the_lease_ends_the_job_too(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    node.idle_lease_seconds = 6.0
    node.write_node_file()
    node.hand_in("train", config(train=train_part(command=python("import time; time.sleep(600)"))))
    node.start()
    bus.await_event("Job Started")
    s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/lease.json", lease_text(datetime.now(UTC), datetime.now(UTC)))
    assert bus.await_event("Job Failed")["reason"].startswith("the job was stopped: the deadline ")
    assert node.process
    await_true(lambda: node.process is not None and node.process.poll() == 0, "the agent's end")
    assert node.processes() == []
