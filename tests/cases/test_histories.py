"""Field complaints about what state machines carry and write down for big fleets and long jobs (cases.csv)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.local.simulated.work import Pace
from tests.simulated_runs import SEED, job, prices

STATE_BYTES_MAX = 64 * 1024
EVENTS_MAX = 5_000
WEEK_SECONDS = 7 * 86_400


def history_of(given: dict[str, Any], **options: Any) -> list[str]:
    """Run the job and return every history event of every execution, each as JSON with all that it carries."""
    lines: list[str] = []
    site = SimulatedSite(SEED, prices(), log=lines.append, **options)
    for number in range(60):
        site.objects.put("data", f"set/{number:04d}.bin", bytes(100))
    try:
        assert site.run(given).status == "SUCCEEDED"
    finally:
        site.close()
    return [line for line in lines if "type" in json.loads(line)]


def test_r055_a_state_carries_no_more_for_a_big_fleet_than_for_a_small_one() -> None:
    small = max(map(len, history_of(job(storage_nodes=1))))
    big = max(map(len, history_of(job(storage_nodes=20, compute={"instance_type": "c7i.large", "count": 20}))))
    assert big < STATE_BYTES_MAX
    assert big <= small * 1.1


def test_r063_a_job_of_a_week_stays_far_below_the_limit_of_a_history() -> None:
    rare = replace(SETTINGS, heartbeat_seconds=3_600, heartbeat_timeout_seconds=4 * 3_600)
    events = history_of(
        job(duration_hours=200), settings=rare, sweep_seconds=None, pace=Pace(train_seconds=WEEK_SECONDS)
    )
    assert 20 < len(events) < EVENTS_MAX
