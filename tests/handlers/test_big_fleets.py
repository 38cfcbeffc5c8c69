"""A fleet of a thousand: what its states carry and what its rows hold stay far below the limits of AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headrace.handlers import check_configuration, check_nodes, configure_nodes, launch_fleet, terminate_nodes
from headrace.local.simulated.memory import MemoryRuns
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import Json
from tests.simulated_runs import job, nodes_of, only_run, simulated_site, start_until

NODES = 1_000
STATE_BYTES_MAX = 64 * 1024
"""A quarter of what Step Functions carries (aws-facts.md section 1)."""
ROW_BYTES_MAX = 400 * 1024
RARELY = replace(SETTINGS, heartbeat_seconds=3_600, heartbeat_timeout_seconds=14_400)


class MeasuredRuns(MemoryRuns):
    """Remembers how large the largest item ever became."""

    largest_bytes = 0

    def insert(self, run_id: str, kind: str, name: str, item: Any) -> bool:
        is_new = super().insert(run_id, kind, name, item)
        self._measure(run_id, kind, name)
        return is_new

    def update(self, run_id: str, kind: str, name: str, changes: Any, expecting: Any) -> bool:
        is_changed = super().update(run_id, kind, name, changes, expecting)
        self._measure(run_id, kind, name)
        return is_changed

    def _measure(self, run_id: str, kind: str, name: str) -> None:
        text = json.dumps(self.read(run_id, kind, name) or {}, separators=(",", ":"))
        self.largest_bytes = max(self.largest_bytes, len(text.encode()))


@pytest.fixture(scope="module")
def runs() -> MeasuredRuns:
    return MeasuredRuns()


@pytest.fixture(scope="module")
def site(runs: MeasuredRuns) -> Iterator[SimulatedSite]:
    """Yield a site with a plan for a thousand storage nodes, whose execution was stopped before it launched."""
    with simulated_site(settings=RARELY, sweep_seconds=None, has_rule=False, runs=runs) as made:
        arn = start_until_planned(made)
        made.interpreter.stop_execution(arn)
        yield made


def start_until_planned(site: SimulatedSite) -> str:
    invoke = site.invoke

    async def only_plan(name: str, payload: Any) -> Any:
        if name in ("LaunchFleet", "MarkTombstone"):
            raise RuntimeError("not yet")
        return await invoke(name, payload)

    site.invoke = only_plan
    return start_until(site, "planning", job(storage_nodes=NODES))


def size_bytes(carried: Json) -> int:
    return len(json.dumps(carried).encode())


def test_a_fleet_of_a_thousand_moves_no_more_through_its_states_than_one_of_two(
    site: SimulatedSite, runs: MeasuredRuns
) -> None:
    order = {"run_id": only_run(site).run_id, "role": "storage", "attempt": 1}
    answers = [launch_fleet.step(order, site.cloud)]
    site.settle(70)
    answers.append(check_nodes.step(order, site.cloud))
    answers.append(configure_nodes.step(order, site.cloud))
    site.settle(20)
    configured = {**order, "command_id": answers[-1]["command_id"]}
    answers.append(check_configuration.step(configured, site.cloud))
    answers.append(terminate_nodes.step(order, site.cloud))
    assert [answer.get("verdict") for answer in answers] == [None, "ready", None, "ready", None]
    assert len(nodes_of(site)) == NODES
    assert max(size_bytes(answer) for answer in answers) < 1024 < STATE_BYTES_MAX
    assert runs.largest_bytes < ROW_BYTES_MAX / 100
