"""Shares, remaining time and money so far."""

from __future__ import annotations

import pytest

from headrace.report.progress import Staging, phase_seconds, staging_of, training_of, usd_so_far
from tests.report import samples


def test_the_share_is_by_bytes_and_by_files_when_all_are_empty() -> None:
    assert Staging(1, 50, 10, 100, 5).share == 0.5
    assert Staging(1, 0, 10, 0, 5).share == 0.1
    assert Staging(0, 0, 0, 0, 0).share == 0.0


def test_the_remaining_time_is_unknown_while_nothing_moves() -> None:
    assert Staging(1, 50, 10, 100, 25).eta_seconds == 2
    assert Staging(1, 50, 10, 100, 0).eta_seconds is None


def test_nothing_is_staged_before_a_node_says_so() -> None:
    assert staging_of(samples.row(), [samples.node("storage", 0)]) is None


def test_a_finished_job_reports_no_step() -> None:
    done = samples.node("compute", 0, job={"manifest": "m", "files": 2, "bytes": 30})
    assert training_of([done]) is None


def test_machines_cost_from_launch_to_release_or_to_now() -> None:
    released = samples.node("storage", 0, usd_per_hour=3600.0, released_at=samples.at(13))
    running = samples.node("storage", 1, usd_per_hour=7200.0)
    assert usd_so_far([released, running], samples.clock(23)) == pytest.approx(10 + 40)


def test_the_last_phase_lasts_until_now_or_the_end() -> None:
    run = samples.row(("admitted", 1), ("staging", 3))
    assert phase_seconds(run, samples.clock(7)) == (("admitted", 2.0), ("staging", 4.0))
    assert phase_seconds(samples.row(), samples.clock(7)) == ()
    over = samples.row(("admitted", 1), ("ended", 3), ended_at=samples.at(3))
    assert phase_seconds(over, samples.clock(59)) == (("admitted", 2.0), ("ended", 0.0))
