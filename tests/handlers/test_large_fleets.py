"""A thousand nodes: an event reads a handful of items, whatever it says, and nothing is decided otherwise for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.instants import to_text
from headrace.domain.run import NodeRow
from headrace.handlers import on_agent_event
from headrace.handlers._marks import PART_NODES, begin_marks, is_last_to_finish
from headrace.handlers._waiting import LOOKS_PER_HEARTBEAT
from headrace.local.simulated.memory import MemoryRuns
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import Json
from tests.handlers.test_on_agent_event import BEAT, DONE, envelope
from tests.simulated_runs import job, nodes_of, only_run, simulated_site, start_until

NODES = 1_000
READS_MAX, WRITES_MAX = 6, 6
"""Items for one event that does not look at all nodes."""
LOOK_SECONDS = SETTINGS.heartbeat_seconds / LOOKS_PER_HEARTBEAT


class CountingRuns(MemoryRuns):
    """Counts the items that are read and the writes that are asked for."""

    reads = writes = 0

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Json] | None:
        self.reads += 1
        return super().read(run_id, kind, name)

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Json], ...]:
        found = super().items(run_id, kind)
        self.reads += len(found)
        return found

    def insert(self, run_id: str, kind: str, name: str, item: Any) -> bool:
        self.writes += 1
        return super().insert(run_id, kind, name, item)

    def update(self, run_id: str, kind: str, name: str, changes: Any, expecting: Any) -> bool:
        self.writes += 1
        return super().update(run_id, kind, name, changes, expecting)


class Large:
    """A run of which one compute node is real and 999 stand only in the table, with all agents silenced."""

    def __init__(self, site: SimulatedSite, runs: CountingRuns) -> None:
        self.site, self.runs = site, runs
        start_until(site, "training", job(budget_usd=900.0))
        for machine in site.fleets.machines.values():
            for task in machine.tasks:
                task.cancel()
        (self.node,) = (node for node in nodes_of(site) if node.role == "compute")
        self.others = [self._other(index) for index in range(1, NODES)]
        for kind in ("training-0", "training"):
            runs.delete(self.node.run_id, "mark", kind)
        begin_marks(site.cloud, self.node.run_id, "training", [self.node, *self.others])
        self._sequence = 1000

    def _other(self, index: int) -> NodeRow:
        changes = {"node_id": f"z-{index:04d}", "index": index, "state": "training", "activity": "training"}
        node = self.node.model_copy(update=changes)
        self.runs.insert(node.run_id, "node", node.node_id, node.model_dump(mode="json"))
        return node

    def finish(self, nodes: list[NodeRow], *, is_marked: bool = True) -> None:
        for node in nodes:
            self.runs.update(node.run_id, "node", node.node_id, {"state": "done"}, {})
            if is_marked:
                assert not is_last_to_finish(self.site.cloud, node, "training")

    def hear(self) -> None:
        """Have every node been heard just now."""
        now = to_text(self.site.cloud.clock.now())
        for node in nodes_of(self.site):
            self.runs.update(node.run_id, "node", node.node_id, {"last_heard_at": now}, {})

    def say(self, detail_type: str, body: dict[str, Any]) -> tuple[int, int]:
        """Deliver an event of the real node; return how many items were read and how many writes were asked for."""
        self._sequence += 1
        event = envelope(self.site, detail_type, body, self._sequence)
        self.runs.reads = self.runs.writes = 0
        assert on_agent_event.step(event, self.site.cloud) == {"applied": True}
        return self.runs.reads, self.runs.writes

    @property
    def is_training(self) -> bool:
        self.site.settle(0.1)
        return only_run(self.site).phases[-1].name == "training" and not only_run(self.site).tombstone_at


@pytest.fixture
def large() -> Iterator[Large]:
    runs = CountingRuns()
    with simulated_site(settings=replace(SETTINGS, large_above_nodes=0), runs=runs, sweep_seconds=None) as site:
        yield Large(site, runs)


def test_of_all_heartbeats_only_one_in_a_few_seconds_looks_at_all_nodes(large: Large) -> None:
    looks = 0
    for _ in range(15):
        large.site.settle(1)
        reads, writes = large.say("Telemetry Sampled", BEAT)
        looks += reads > NODES
        assert reads <= READS_MAX or NODES < reads < NODES + 10
        assert writes <= WRITES_MAX
    assert looks == 15 / LOOK_SECONDS


def test_a_heartbeat_keeps_the_task_alive_only_while_all_are_heard(large: Large) -> None:
    def live(*, are_heard: bool) -> None:
        for _ in range(5):
            large.site.settle(40)
            if are_heard:
                large.hear()
            large.say("Telemetry Sampled", BEAT)

    live(are_heard=True)
    assert large.is_training
    live(are_heard=False)
    large.site.settle(SETTINGS.heartbeat_timeout_seconds)
    assert not large.is_training


def test_the_last_node_ends_the_training_at_once_and_none_before_it(large: Large) -> None:
    large.say("Telemetry Sampled", BEAT)
    large.finish(large.others[:-1])
    reads, writes = large.say("Job Done", DONE)
    assert (reads <= READS_MAX, writes <= WRITES_MAX, large.is_training) == (True, True, True)
    last = large.others[-1]
    large.runs.update(last.run_id, "node", last.node_id, {"state": "done"}, {})
    assert is_last_to_finish(large.site.cloud, last, "training")
    assert large.is_training, "the marks end nothing"
    large.say("Job Done", DONE)
    assert not large.is_training


def test_a_node_that_finishes_twice_counts_once(large: Large) -> None:
    part = [large.node, *large.others[: PART_NODES - 1]]
    large.finish(part[1:])
    for _ in range(3):
        assert not is_last_to_finish(large.site.cloud, large.node, "training")
    marks = large.runs.read(large.node.run_id, "mark", "training") or {}
    assert [name for name, is_marked in marks.items() if is_marked] == ["0"]


def test_marks_that_were_lost_are_made_up_for_by_the_next_look(large: Large) -> None:
    large.finish(large.others, is_marked=False)
    large.say("Job Done", DONE)
    large.site.settle(LOOK_SECONDS)
    large.say("Telemetry Sampled", BEAT)
    assert not large.is_training


def test_a_run_without_marks_looks_at_all_nodes(large: Large) -> None:
    large.say("Telemetry Sampled", BEAT)
    large.runs.delete(large.node.run_id, "mark", "training-0")
    large.finish(large.others, is_marked=False)
    large.say("Job Done", DONE)
    assert not large.is_training


def test_a_node_that_fails_speaks_for_itself(large: Large) -> None:
    large.say("Telemetry Sampled", BEAT)
    reads, writes = large.say("Job Failed", {"reason": "it ran out of memory"})
    assert (reads <= READS_MAX, writes <= WRITES_MAX) == (True, True)
    large.site.settle(5)
    assert only_run(large.site).tombstone_at


def test_leases_count_the_money_once_a_minute(large: Large) -> None:
    large.runs.update(large.node.run_id, "run", "run", {"money_counted_at": None}, {})
    counts = 0
    for _ in range(12):
        large.runs.update(large.node.run_id, "node", large.node.node_id, {"lease_renewed_at": None}, {})
        large.runs.update(large.node.run_id, "run", "run", {"looked_at": to_text(large.site.cloud.clock.now())}, {})
        reads, _ = large.say("Telemetry Sampled", BEAT)
        counts += reads > NODES
        large.site.settle(10)
    assert counts == 2
