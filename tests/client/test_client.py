"""The Python API: plan, start, follow, stop, and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.client import Client
from headrace.client.handle import RunRefused, execution_name
from headrace.client.places import BadPlace
from headrace.domain.errors import BadJob, InfeasibleJob
from headrace.domain.job_text import job_from_mapping
from tests.client.fake_site import RUN_ID, FakeSite, admit, end, enter, wait

Scripted = Callable[..., FakeSite]


def client(site: FakeSite) -> Client:
    return Client(site.home, open_site=lambda _home, _faults: site)


def test_a_plan_starts_nothing_and_makes_nothing(home: Path, job_file: Path) -> None:
    def refuse(_home: Path, _faults: tuple[str, ...]) -> FakeSite:
        raise AssertionError("a plan opened the site")

    with Client(home, open_site=refuse) as planner:
        plan = planner.plan(job_file)
    assert (plan.demand.dataset_files, plan.demand.dataset_bytes) == (1, 1)
    assert not home.exists()
    assert not (job_file.parent / "out").exists()


def test_a_plan_of_a_mapping_is_that_of_the_same_file(
    job_file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job_file.parent)
    with Client(home) as planner:
        mapping = planner.prepare(job_file).given["job"] | {"data": {"source": "data"}, "results": "out"}
        assert planner.plan(mapping) == planner.plan(job_file)


def test_a_job_that_cannot_be_planned_is_refused_before_anything_starts(scripted: Scripted, job_file: Path) -> None:
    site = scripted()
    job_file.write_text(job_file.read_text() + "budget_usd: 0.000001\n")
    with client(site) as starter, pytest.raises(InfeasibleJob):
        starter.start(job_file)
    assert site.opened == 0


@pytest.mark.parametrize(("broken", "error"), [("name: X Y\n", BadJob), ("data: {source: gone}\n", BadPlace)])
def test_a_bad_job_is_refused_before_anything_starts(
    scripted: Scripted, job_file: Path, broken: str, error: type[Exception]
) -> None:
    site = scripted()
    lines = job_file.read_text().splitlines(keepends=True)
    job_file.write_text(
        "".join(line for line in lines if not line.startswith(broken.split(":", maxsplit=1)[0])) + broken
    )
    with client(site) as starter, pytest.raises(error):
        starter.start(job_file)
    assert site.opened == 0


def test_a_run_is_started_with_its_folders_served_and_followed_to_its_receipt(
    scripted: Scripted, job_file: Path
) -> None:
    site = scripted(wait, admit, enter("admitted", "training"), end("SUCCEEDED"))
    looks: list[str] = []
    with client(site) as starter:
        run = starter.start(job_file)
        receipt = run.wait(on_look=lambda snapshot: looks.append(snapshot.row.status))
        assert (run.id, run.status(), receipt.status) == (RUN_ID, "SUCCEEDED", "SUCCEEDED")
        assert run.results_folder == job_file.parent / "out" / RUN_ID
    assert set(looks) == {"RUNNING"}
    assert job_from_mapping(site.given["job"]).name == "digits"
    assert sorted(site.served.values()) == [(job_file.parent / "data", False), (job_file.parent / "out", True)]
    assert (job_file.parent / "out").is_dir()
    assert (site.opened, site.closed) == (1, 1)


def test_code_is_uploaded_to_where_the_job_says_it_is(scripted: Scripted, job_file: Path) -> None:
    site = scripted(admit, end("SUCCEEDED"))
    (job_file.parent / "train.py").write_text("print('hi')")
    job_file.write_text(job_file.read_text() + "code: .\n")
    with client(site) as starter:
        starter.start(job_file).wait()
    bucket, _, key = site.given["job"]["code"].removeprefix("s3://").partition("/")
    assert site.cloud.objects.get(bucket, key).startswith(b"\x1f\x8b")


def test_a_stop_ends_the_run_as_stopped(scripted: Scripted, job_file: Path) -> None:
    site = scripted(admit, *[wait] * 1000)
    with client(site) as starter:
        run = starter.start(job_file)
        run.stop("ada")
        assert run.wait().status == "STOPPED"
    assert site.stops == ["ada"]


def test_leaving_the_block_stops_what_still_runs(scripted: Scripted, job_file: Path) -> None:
    site = scripted(admit, *[wait] * 1000)
    with client(site) as starter:
        starter.start(job_file)
    assert site.stops == ["the program that started it, which ended"]
    assert site.closed == 1


def test_waiting_ends_in_time_and_the_run_goes_on(scripted: Scripted, job_file: Path) -> None:
    site = scripted(admit, *[wait] * 1000)
    with client(site) as starter:
        run = starter.start(job_file)
        with pytest.raises(TimeoutError, match="is not over after 0 s"):
            run.wait(timeout_seconds=0)
        assert run.status() == "RUNNING"


def test_a_run_that_is_never_recorded_is_refused_with_the_cause(scripted: Scripted, job_file: Path) -> None:
    with client(scripted(wait)) as starter, pytest.raises(RunRefused, match="refused by the script"):
        starter.start(job_file)


def test_all_runs_are_listed(scripted: Scripted, job_file: Path) -> None:
    site = scripted(admit, end("SUCCEEDED"))
    with client(site) as starter:
        starter.start(job_file).wait()
        assert [run.row.run_id for run in starter.runs()] == [RUN_ID]


def test_an_execution_has_a_readable_name_that_step_functions_takes() -> None:
    name = execution_name("a" * 40, datetime(2026, 11, 30, 2, 5, 9, tzinfo=UTC), "a1b2c3")
    assert name == "a" * 40 + "-20261130-020509-a1b2c3"
    assert len(name) <= 80
