"""One machine runs, stops and recovers a run with the real machines and handlers, and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.errors import AccessDenied, ObjectMissing, UnknownRun
from headrace.domain.receipt import Receipt
from headrace.domain.run import RunRow
from headrace.handlers.on_execution_status import pointer_id
from headrace.local.faults import Faults
from headrace.local.marker import kill_marked, marked_processes
from headrace.local.owner import this_process
from headrace.local.recovery import RunIsDriven
from headrace.local.settings import local_settings
from headrace.local.site import LocalSite, SiteNotOpen
from tests.local.agents import DOUBLE_FORKING, OBEDIENT
from tests.waiting import wait_until

DRIVING = """
import sys
from pathlib import Path
from tests.local.agents import DOUBLE_FORKING
from tests.local.test_site import quick_site, start_small_run
site = quick_site(Path(sys.argv[1]), DOUBLE_FORKING).__enter__()
start_small_run(site, Path(sys.argv[1]))
print("started", flush=True)
input()
"""
CHECKOUT = Path(__file__).parents[2]


def quick_site(home: Path, agent: tuple[str, ...] = OBEDIENT, faults: Faults | None = None) -> LocalSite:
    """Return a site whose agents are silent, so that a run waits for them until it is stopped."""
    settings = replace(local_settings(), stop_grace_seconds=1, heartbeat_timeout_seconds=60)
    return LocalSite(home, faults, settings, agent)


def start_small_run(site: LocalSite, home: Path) -> str:
    """Start a run over one small file; return the execution's ARN."""
    for name in ("data", "results"):
        (home / name).mkdir(exist_ok=True)
        site.serve_folder(f"{name}-bucket", home / name, writable=name == "results")
    (home / "data" / "one.txt").write_text("1")
    job: dict[str, Any] = {
        "name": f"small-{os.getpid()}",
        "data": {"source": "s3://data-bucket/"},
        "results": "s3://results-bucket/",
        "command": ["true"],
        "compute": {"instance_type": "c6gd.medium"},
        "demand": {"read_bytes_per_s": 1000},
        "storage": "local",
        "duration_hours": 0.1,
    }
    return site.start_run({"job": job}, "small")


def row_of(site: LocalSite, arn: str) -> RunRow | None:
    pointer = site.cloud.runs.read(pointer_id(arn), "pointer", "run")
    item = site.cloud.runs.read(pointer["run_id"], "run", "run") if pointer else None
    return RunRow.model_validate(item) if item else None


def await_phase(site: LocalSite, arn: str, phase: str) -> RunRow:
    """Return the run's row once the run is in the phase and has a machine."""

    def is_there() -> bool:
        row = row_of(site, arn)
        if row is None or row.ended_at:
            raise AssertionError(f"the run never got to {phase}: {row}; {site.failure_of(arn)}")
        return row.phases[-1].name == phase and bool(marked_processes({"HEADRACE_RUN": row.run_id}))

    wait_until(lambda: row_of(site, arn) is not None)
    wait_until(is_there)
    row = row_of(site, arn)
    assert row is not None
    return row


def receipt_of(site: LocalSite, row: RunRow) -> Receipt:
    return Receipt.model_validate_json(site.cloud.objects.get(site.cloud.settings.run_bucket, str(row.report_key)))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    with quick_site(tmp_path) as opened:
        yield opened
    assert marked_processes({"HEADRACE_OWNER": this_process()}) == {}, "the S3 server is gone"


def test_folders_are_buckets_before_and_after_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("1")
    with quick_site(tmp_path) as site:
        site.serve_folder("data-bucket", tmp_path / "data", writable=False)
        assert site.cloud.objects.get("data-bucket", "x") == b"1"
        site.cloud.objects.put("headrace-runs", "runs/x", b"2")
    assert (tmp_path / "buckets" / "headrace-runs" / "runs" / "x").read_text() == "2"
    again = quick_site(tmp_path)
    again.serve_folder("data-bucket", tmp_path / "data", writable=False)
    with again:
        assert again.cloud.objects.get("data-bucket", "x") == b"1"
        assert again.cloud.objects.get("headrace-runs", "runs/x") == b"2"


def test_a_site_is_used_inside_its_block_only(tmp_path: Path) -> None:
    site = quick_site(tmp_path)
    for use in (lambda: site.cloud, lambda: site.start_run({}, "x"), lambda: site.is_over("arn")):
        with pytest.raises(SiteNotOpen):
            use()


def test_a_denied_bucket_refuses_the_control_plane_and_is_not_served_to_agents(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with quick_site(tmp_path, faults=Faults.parse(("denied:results-bucket",))) as site:
        site.serve_folder("results-folder-1", tmp_path / "results", writable=True)
        with pytest.raises(AccessDenied):
            site.cloud.objects.put("results-folder-1", "x", b"")
        site.cloud.objects.put("headrace-runs", "x", b"")
        with pytest.raises(ObjectMissing):
            site.cloud.objects.get("headrace-runs", "y")


def test_an_input_that_is_no_job_ends_without_a_run_and_says_why(site: LocalSite) -> None:
    arn = site.start_run({"nonsense": 1}, "nonsense")
    wait_until(lambda: site.is_over(arn))
    assert row_of(site, arn) is None
    assert "UnknownTrigger" in str(site.failure_of(arn))


def test_a_stopped_run_is_over_once_its_clean_up_is(site: LocalSite, tmp_path: Path) -> None:
    arn = start_small_run(site, tmp_path)
    run_id = await_phase(site, arn, "staging").run_id
    assert not site.is_over(arn)
    site.stop_run(run_id, "ann")
    site.stop_run(run_id, "bob")
    wait_until(lambda: site.is_over(arn))
    row = row_of(site, arn)
    assert row is not None
    assert (row.status, row.failure) == ("STOPPED", "stopped by ann")
    assert row.owner_process == this_process()
    assert receipt_of(site, row).status == "STOPPED"
    assert marked_processes({"HEADRACE_RUN": run_id}) == {}
    site.stop_run(run_id, "carl")
    assert row_of(site, arn) is not None


def test_a_stop_noted_by_another_process_is_noticed(site: LocalSite, tmp_path: Path) -> None:
    arn = start_small_run(site, tmp_path)
    run_id = await_phase(site, arn, "staging").run_id
    code = (
        "import sys; from pathlib import Path; from headrace.local.store import LocalRuns\n"
        "runs = LocalRuns(Path(sys.argv[1]))\n"
        "runs.update(sys.argv[2], 'run', 'run', {'stop_requested_by': 'dora'}, {'stop_requested_by': None})\n"
        "runs.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "runs.sqlite3"), run_id], check=True)
    wait_until(lambda: site.is_over(arn))
    row = row_of(site, arn)
    assert row is not None
    assert (row.status, row.failure) == ("STOPPED", "stopped by dora")


def test_stopping_or_recovering_an_unknown_run_is_an_error(site: LocalSite) -> None:
    questions: list[Callable[[], object]] = [lambda: site.stop_run("nobody", "ann"), lambda: site.recover("nobody")]
    for ask in questions:
        with pytest.raises(UnknownRun, match="'nobody'"):
            ask()


def test_leaving_the_site_ends_the_runs_that_go_on(tmp_path: Path) -> None:
    with quick_site(tmp_path, DOUBLE_FORKING) as site:
        run_id = await_phase(site, start_small_run(site, tmp_path), "staging").run_id
    assert marked_processes({"HEADRACE_RUN": run_id}) == {}
    with quick_site(tmp_path) as later:
        row = RunRow.model_validate(later.cloud.runs.read(run_id, "run", "run"))
        assert (row.status, row.ended_at is not None) == ("STOPPED", True)


def test_a_run_whose_process_was_killed_is_recovered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-c", DRIVING, str(home)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as driver,
        quick_site(home) as site,
    ):
        assert driver.stdout is not None
        assert driver.stdout.readline() == "started\n"
        wait_until(lambda: [*site.cloud.runs.run_ids()])
        (run_id,) = site.cloud.runs.run_ids()
        wait_until(lambda: len(marked_processes({"HEADRACE_RUN": run_id})) >= 2)
        with pytest.raises(RunIsDriven, match=f"process {driver.pid}"):
            site.recover(run_id)
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        assert len(marked_processes({"HEADRACE_RUN": run_id})) >= 2, "its nodes outlive it"
        site.recover(run_id)
        row = RunRow.model_validate(site.cloud.runs.read(run_id, "run", "run"))
        assert row.status == "FAILED"
        assert "the process that drove the run died" in str(row.failure)
        assert {node.life for node in site.cloud.fleets.list_nodes(run_id)} == {"terminated"}
        assert marked_processes({"HEADRACE_RUN": run_id}) == {}
        assert marked_processes({"HEADRACE_OWNER": str(row.owner_process)}) == {}
        receipt = receipt_of(site, row)
        assert all(one.released_at for one in receipt.resources)
        site.recover(run_id)
        assert RunRow.model_validate(site.cloud.runs.read(run_id, "run", "run")) == row
    assert kill_marked({"HEADRACE_RUN": run_id})


def test_a_site_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite3").mkdir()
    with pytest.raises(Exception, match="unable to open database"), quick_site(tmp_path):
        raise AssertionError("it opened")
    assert marked_processes({"HEADRACE_OWNER": this_process()}) == {}
