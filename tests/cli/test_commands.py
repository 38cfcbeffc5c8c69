"""What each command answers, to people and to programs, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli.app import app, run_app
from headrace.domain.plan_answer import PlanAnswer
from headrace.local.owner import this_process
from tests.cli.conftest import Headrace
from tests.client.fake_site import RUN_ID, FakeSite, admit, end, enter, wait
from tests.report import samples

SiteOf = Callable[..., FakeSite]
DEAD = "1:0"
HOW = ("admitted", "training")


def test_every_command_explains_itself_with_an_example(headrace: Headrace) -> None:
    for name in app.commands:
        answer = headrace(name, "--help")
        assert answer.code == 0
        assert f"Example: headrace {name}" in answer.out
        assert "--json" in answer.out
        assert "--home DIR" in answer.out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["--version"]) == 0
    assert capsys.readouterr().out == "headrace 0.1.0\n"


def test_a_plan_is_printed_and_nothing_is_made(headrace: Headrace, job_file: Path, home: Path) -> None:
    answer = headrace("plan", job_file)
    assert answer.code == 0
    assert answer.out.startswith("plan for digits in us-east-1\n")
    assert "binding limit" in answer.out
    assert "\x1b" not in answer.out
    assert not home.exists()


def test_a_plan_for_a_program_is_one_document(headrace: Headrace, job_file: Path) -> None:
    answer = PlanAnswer.model_validate_json(headrace("plan", job_file, "--json").out)
    assert answer.plan.job_name == "digits"
    assert answer.plan.chosen.next_cheaper


def test_a_plan_says_why_a_type_is_not_in_it(headrace: Headrace, job_file: Path) -> None:
    answer = headrace("plan", job_file, "--why", "i3en.24xlarge", "--why", "c7i.large")
    assert answer.code == 0
    assert "why not i3en.24xlarge\n" in answer.out
    assert "why c7i.large\n" in answer.out
    bad = headrace("plan", job_file, "--why", "i3en.25xlarge")
    assert (bad.code, bad.out) == (2, "")
    assert "close: " in bad.err


def test_a_plan_tabulates_what_would_be_with_other_values(headrace: Headrace, job_file: Path) -> None:
    words = ("--what-if", "count=1,2", "--what-if", "fabric=roce,tcp")
    answer = headrace("plan", job_file, *words)
    assert answer.code == 0
    assert answer.out.startswith("what if, for digits in us-east-1\ncount  fabric  storage")
    rows = PlanAnswer.model_validate_json(headrace("plan", job_file, *words, "--json").out).what_if
    assert [tuple(row.changes.values()) for row in rows] == [("1", "roce"), ("1", "tcp"), ("2", "roce"), ("2", "tcp")]
    bad = headrace("plan", job_file, "--what-if", "colour=red")
    assert (bad.code, bad.out) == (2, "")
    assert "'colour' cannot be varied" in bad.err


def test_the_replay_prints_the_figures_that_the_planner_is_held_to(headrace: Headrace) -> None:
    answer = headrace("replay")
    assert answer.code == 0
    assert "demand from first principles beside what was measured" in answer.out
    assert "YanRongTech" in answer.out
    assert "128 x i3en.24xlarge of Volumez: 1,388.54 USD/h on demand" in answer.out
    assert "sensitivity to the share of a NIC" in answer.out


def test_the_replay_for_a_program_is_one_document(headrace: Headrace) -> None:
    document = json.loads(headrace("replay", "--json").out)["replay"]
    assert len(document["rows"]) == 131
    assert document["largest"]["storage"] == "128 x i3en.24xlarge"


def test_a_plan_holds_to_the_files_of_the_home_or_to_those_named(
    headrace: Headrace, job_file: Path, home: Path, tmp_path: Path
) -> None:
    home.mkdir()
    (home / "policy.yaml").write_text("denied_types: [c6gd.*]")
    (home / "prices.yaml").write_text("usd_per_hour: {us-east-1: {i3en.large: 0.001}}")
    kept = PlanAnswer.model_validate_json(headrace("plan", job_file, "--json").out).plan
    assert kept.chosen.fleets[0].instance_type == "i3en.large"
    other = tmp_path / "other.yaml"
    other.write_text("allowed_regions: [eu-west-1]")
    answer = headrace("plan", job_file, "--policy", other)
    assert (answer.code, answer.out) == (2, "")
    assert "the policy allows no machines in us-east-1; allowed: eu-west-1" in answer.err
    missing = headrace("plan", job_file, "--prices", tmp_path / "gone.yaml")
    assert (missing.code, "gone.yaml is not valid" in missing.err, "No such file" in missing.err) == (2, True, True)


def test_a_plan_that_needs_approval_is_shown_and_said_to(headrace: Headrace, job_file: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("approval_over_usd: 0.01\napprovers: [ada]")
    answer = headrace("plan", job_file, "--policy", rules)
    assert answer.code == 0
    assert "a run of this job would be refused: the run may cost" in answer.err
    job_file.write_text(job_file.read_text() + "approved_by: ada\n")
    assert headrace("plan", job_file, "--policy", rules).err == ""


@pytest.mark.parametrize("command", ["plan", "run"])
def test_all_faults_of_a_job_are_printed_with_their_place(headrace: Headrace, job_file: Path, command: str) -> None:
    job_file.write_text(job_file.read_text() + "duration_hour: 3\nbudget_usd: -1\n")
    answer = headrace(command, job_file)
    assert answer.code == 2
    assert answer.out == ""
    assert "line 10, column 1, duration_hour: is not a key that a job has; did you mean 'duration_hours'?" in answer.err
    assert "line 11, column 13, budget_usd: " in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "Missing argument 'JOB.yaml'"),
        (["run", "gone.yaml"], "gone.yaml cannot be read: No such file or directory"),
        (["run", "job.yaml", "--fault", "weather:rain"], "there is no kind of fault called 'weather'"),
        (["dance"], "No such command 'dance'"),
        (["status", "--colour"], "No such option"),
        (["status"], "there are no runs yet; start one with `headrace run JOB.yaml`"),
        (["logs", "--follow", "--json"], "--follow and --json do not go together"),
    ],
)
def test_bad_usage_is_said_in_words_and_ends_with_2(headrace: Headrace, arguments: list[str], said: str) -> None:
    answer = headrace(*arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""


def test_a_run_prints_its_plan_its_changes_and_its_receipt(headrace: Headrace, site_of: SiteOf, job_file: Path) -> None:
    site_of(admit, enter(*HOW), end("SUCCEEDED"))
    answer = headrace("run", job_file)
    assert answer.code == 0
    assert answer.out.index("plan for digits") < answer.out.index(f"{RUN_ID} started")
    assert answer.out.index("training: the command runs") < answer.out.index(f"receipt of {RUN_ID}")
    assert str(job_file.parent / "out" / RUN_ID) in answer.out, "a path is whole, however long"
    assert answer.err == ""
    assert not set(answer.out) & {"\x1b", "\r"}


def test_a_run_for_a_program_is_lines_of_json_from_the_plan_to_the_receipt(
    headrace: Headrace, site_of: SiteOf, job_file: Path
) -> None:
    site_of(admit, enter(*HOW), end("SUCCEEDED"))
    lines = [json.loads(line) for line in headrace("run", job_file, "--json").out.splitlines()]
    assert [line["kind"] for line in lines] == ["plan", "run", "phase", "phase", "ended", "receipt"]
    assert lines[-1]["receipt"]["status"] == "SUCCEEDED"
    assert lines[-1]["results_folder"] == str(job_file.parent / "out" / RUN_ID)


@pytest.mark.parametrize(("status", "code"), [("FAILED", 1), ("STOPPED", 130)])
def test_the_exit_code_tells_how_the_run_ended(
    headrace: Headrace, site_of: SiteOf, job_file: Path, status: str, code: int
) -> None:
    site_of(admit, end(status, "because"))
    answer = headrace("run", job_file)
    assert answer.code == code
    assert "because" in answer.out


def test_a_run_that_is_never_recorded_fails_with_the_cause(headrace: Headrace, site_of: SiteOf, job_file: Path) -> None:
    site_of(wait)
    answer = headrace("run", job_file)
    assert answer.code == 1
    assert "the run was refused: BadJob: refused by the script" in answer.err


def test_runs_are_listed(headrace: Headrace, site_of: SiteOf) -> None:
    assert headrace("ls").out == "no runs yet; `headrace init` gives you an example to run\n"
    site_of().admit()
    assert [line.split()[:3] for line in headrace("ls").out.splitlines()] == [
        ["run", "status", "phase"],
        [RUN_ID, "RUNNING", "admitted"],
    ]
    assert [run["run_id"] for run in json.loads(headrace("ls", "--json").out)["runs"]] == [RUN_ID]


def test_the_status_of_the_newest_run_or_of_one_by_its_beginning_is_shown(headrace: Headrace, site_of: SiteOf) -> None:
    site = site_of()
    site.admit()
    enter(*HOW)(site)
    assert headrace("status").out.startswith(f"{RUN_ID}  RUNNING")
    assert headrace("status", "digits-01").out.startswith(f"{RUN_ID}  RUNNING")
    assert headrace("status", "digits-9").code == 2


def test_the_status_for_a_program_holds_no_secret(headrace: Headrace, site_of: SiteOf) -> None:
    site = site_of()
    site.admit()
    site.change(training_token="tok-secret", staging_token="tok-secret")
    out = headrace("status", "--json").out
    assert json.loads(out)["run"]["status"] == "RUNNING"
    assert "tok-secret" not in out + headrace("ls", "--json").out


def test_a_receipt_is_shown_once_there_is_one(headrace: Headrace, site_of: SiteOf) -> None:
    site = site_of()
    site.admit()
    assert headrace("receipt").code == 1
    assert f"{RUN_ID} has no receipt yet: it is RUNNING" in headrace("receipt").err
    end("FAILED", samples.HOSTILE)(site)
    answer = headrace("receipt", RUN_ID)
    assert answer.code == 0
    assert answer.out.startswith(f"receipt of {RUN_ID}\n")
    assert "\x1b" not in answer.out
    assert json.loads(headrace("receipt", "--json").out)["receipt"]["reason"] == samples.HOSTILE


def test_logs_are_shown_without_what_could_steer_a_terminal(headrace: Headrace, site_of: SiteOf, home: Path) -> None:
    site_of().admit()
    assert headrace("logs").code == 1
    folder = home / "buckets" / "headrace-runs" / "runs" / RUN_ID / "logs"
    folder.mkdir(parents=True)
    (folder / "i-1.log").write_text("\x1b[32mepoch 1\x1b[0m\n\x1b]0;evil\x07 10%\r100%\n")
    (folder / "i-2.log").write_text("other")
    assert headrace("logs").out == "== i-1 ==\nepoch 1\n100%\n== i-2 ==\nother\n"
    assert headrace("logs", "--node", "i-2").out == "== i-2 ==\nother\n"
    assert json.loads(headrace("logs", "--json").out)["logs"][1] == {"node_id": "i-2", "text": "other"}
    assert headrace("logs", "--node", "i-3").code == 1


def test_following_a_log_ends_with_the_run(headrace: Headrace, site_of: SiteOf, home: Path) -> None:
    site = site_of()
    site.admit()
    end("SUCCEEDED")(site)
    folder = home / "buckets" / "headrace-runs" / "runs" / RUN_ID / "logs"
    folder.mkdir(parents=True)
    (folder / "i-1.log").write_text("last words")
    assert headrace("logs", "-f").out == "== i-1 ==\nlast words\n"


def test_a_stop_asks_the_living_process_and_waits_for_the_end(
    headrace: Headrace, site_of: SiteOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(owner_process=this_process())
    site.admit()
    monkeypatch.setattr("headrace.cli.watch.time.sleep", lambda _seconds: end("STOPPED", "stopped by ada")(site))
    answer = headrace("stop", "digits")
    assert answer.code == 0
    assert "STOPPED after" in answer.out
    assert f"stopping {RUN_ID}" in answer.err
    item = site.cloud.runs.read(RUN_ID, "run", "run")
    assert item is not None
    assert item["stop_requested_by"].endswith(" (headrace stop)")


def test_a_run_of_another_process_is_watched_to_its_receipt(
    headrace: Headrace, site_of: SiteOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(owner_process=this_process())
    site.admit()
    monkeypatch.setattr("headrace.cli.watch.time.sleep", lambda _seconds: end("FAILED", "exit code 3")(site))
    answer = headrace("watch", "digits")
    assert answer.code == 1
    assert "FAILED after" in answer.out
    assert "exit code 3" in answer.out


def test_a_stop_of_a_run_that_is_over_changes_nothing(headrace: Headrace, site_of: SiteOf) -> None:
    site = site_of()
    site.admit()
    end("SUCCEEDED")(site)
    answer = headrace("stop", RUN_ID, "--json")
    assert answer.code == 0
    assert "is over since" in answer.err
    assert json.loads(answer.out)["run"]["status"] == "SUCCEEDED"
    assert json.loads(answer.out)["run"]["stop_requested_by"] is None


def test_every_command_first_ends_runs_whose_process_was_killed(headrace: Headrace, site_of: SiteOf) -> None:
    site = site_of(owner_process=DEAD)
    site.admit()
    answer = headrace("ls")
    assert answer.err == f"{RUN_ID}: the process that drove the run was killed; everything of it is released now\n"
    assert "FAILED" in answer.out
    assert headrace("ls").err == ""
