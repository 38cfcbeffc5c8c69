"""What a run adds to the metrics of its stack."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.measures import measures_of
from headrace.domain.receipt import PhaseSpent, Receipt, ReleasedResource
from headrace.domain.run import NodeRow


def machine(role: str, seconds: float | None) -> ReleasedResource:
    return ReleasedResource(
        kind="node",
        resource_id=f"{role}-{seconds}",
        role=role,
        instance_type="i4i.large",
        launched_at=None,
        released_at=None,
        seconds_after_job_done=seconds,
        usd=0.0,
    )


def receipt(*resources: ReleasedResource, **more: Any) -> Receipt:
    fields: dict[str, Any] = {
        "run_id": "job-1",
        "job_name": "job",
        "status": "SUCCEEDED",
        "reason": None,
        "started_at": "2026-11-30T00:00:00.000Z",
        "ended_at": "2026-11-30T01:00:00.000Z",
        "job_done_at": None,
        "resources": resources,
        "phases": (PhaseSpent(name="training", started_at="", seconds=60.5, planned_seconds=None),),
        "estimated_usd_low": None,
        "estimated_usd_high": None,
        "usd": 1.25,
        "results": None,
        "results_files": 0,
        "results_bytes": 0,
    }
    return Receipt(**{**fields, **more})


def node(staged_bytes: int) -> NodeRow:
    return NodeRow(
        run_id="job-1",
        node_id="i-1",
        role="storage",
        attempt=1,
        index=0,
        instance_type="i4i.large",
        zone="a",
        address="",
        usd_per_hour=0.1,
        launched_at="2026-11-30T00:00:00.000Z",
        staged={"bytes": staged_bytes},
    )


def test_a_run_tells_its_end_its_cost_its_bytes_and_its_phases() -> None:
    assert measures_of(receipt(), [node(10), node(5)]) == {
        "RunsSucceeded": ("Count", 1),
        "Usd": ("Count", 1.25),
        "BytesStaged": ("Bytes", 15),
        "TrainingSeconds": ("Seconds", 60.5),
    }


@pytest.mark.parametrize("status", ["FAILED", "STOPPED"])
def test_every_end_has_a_count_of_its_own(status: str) -> None:
    assert f"Runs{status.title()}" in measures_of(receipt(status=status), [])


def test_the_release_is_measured_to_the_last_compute_node() -> None:
    machines = (machine("compute", 0.4), machine("compute", 1.5), machine("storage", 99.0), machine("compute", None))
    assert measures_of(receipt(*machines), [])["ReleaseSeconds"] == ("Seconds", 1.5)


def test_a_machine_that_was_gone_before_the_job_ended_waited_for_nothing() -> None:
    assert measures_of(receipt(machine("compute", -3.0)), [])["ReleaseSeconds"] == ("Seconds", 0.0)
