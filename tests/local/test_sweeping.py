"""On one machine the sweep leaves runs of other living processes alone, and ends those of dead ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.domain.run import RunRow
from headrace.handlers import on_sweep
from headrace.local import control_plane
from headrace.local.marker import marked_processes
from headrace.local.settings import local_settings
from headrace.local.site import LocalSite
from headrace.local.sweeping import shared
from tests.local.agents import OBEDIENT
from tests.local.test_site import CHECKOUT, DRIVING, await_phase, quick_site, start_small_run
from tests.waiting import wait_until


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield another process that drives a run, and the home that both share."""
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-c", DRIVING, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process, home
        process.kill()


def impatient(site: LocalSite) -> LocalSite:
    """Make two looks at once enough."""
    site._settings = replace(site._settings, sweep_grace_seconds=0, boot_grace_seconds=0)
    return site


def row_of(site: LocalSite, run_id: str) -> RunRow:
    return RunRow.model_validate(site.cloud.runs.read(run_id, "run", "run"))


def run_of_another(site: LocalSite) -> str:
    wait_until(lambda: [*site.cloud.runs.run_ids()])
    (run_id,) = site.cloud.runs.run_ids()
    wait_until(lambda: marked_processes({"HEADRACE_RUN": run_id}))
    return str(run_id)


def test_a_run_that_another_process_drives_is_live_until_that_process_dies(
    driver: tuple[subprocess.Popen[str], Path],
) -> None:
    process, home = driver
    with impatient(quick_site(home)) as site:
        run_id = run_of_another(site)
        cloud = shared(site.cloud)
        for _ in range(3):
            assert on_sweep.step({}, cloud)["acted"] == {}
        assert row_of(site, run_id).tombstone_at is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert on_sweep.step({}, cloud)["watched"] == 1
        assert on_sweep.step({}, cloud)["acted"] == {"decommission": 1}
        wait_until(lambda: row_of(site, run_id).ended_at)
        assert row_of(site, run_id).status == "FAILED"
        assert "ExecutionLost" in str(row_of(site, run_id).failure)
        assert marked_processes({"HEADRACE_RUN": run_id}) == {}


def test_a_run_of_this_process_is_live(tmp_path: Path) -> None:
    with impatient(quick_site(tmp_path)) as site:
        row = await_phase(site, start_small_run(site, tmp_path), "staging")
        for _ in range(3):
            assert on_sweep.step({}, shared(site.cloud))["acted"] == {}
        assert row_of(site, row.run_id).tombstone_at is None


def test_an_execution_that_nobody_knows_is_not_running(tmp_path: Path) -> None:
    with quick_site(tmp_path) as site:
        assert not shared(site.cloud).executions.is_running("arn:aws:states:local:000000000000:execution:x:y")


def test_the_site_sweeps_by_itself_and_writes_down_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane, "SWEEP_SECONDS", 0.2)
    with impatient(LocalSite(tmp_path, None, local_settings(), OBEDIENT)) as site:
        lost = RunRow(
            run_id="lost-1",
            job_name="lost",
            execution_arn="arn:lost",
            trigger="console",
            started_at="2026-01-01T00:00:00.000Z",
            deadline_at="2099-01-01T00:00:00.000Z",
            owner_process="1:1",
        )
        site.cloud.runs.insert("lost-1", "run", "run", lost.model_dump(mode="json"))
        wait_until(lambda: row_of(site, "lost-1").ended_at)
        assert row_of(site, "lost-1").status == "FAILED"
        wait_until(lambda: row_of(site, "lost-1").swept_at)
    log = (tmp_path / "logs" / "site.log").read_text()
    assert "the sweep: run/lost-1: decommission: its execution arn:lost is not running" in log
