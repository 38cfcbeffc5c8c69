"""The commands that also work on a deployed stack, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli import stack as options
from headrace.client import AwsClient
from tests.cli.conftest import Headrace
from tests.client.test_on_aws import Stack, job_file, stack

__all__ = ["job_file", "stack"]
LOCAL_ONLY = ("--stack", "--region", "--profile")


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch, stack: Stack) -> list[tuple[str | None, ...]]:
    """Have every command open the test's stack; return how each one named it."""
    named: list[tuple[str | None, ...]] = []

    def open_client(*names: str | None) -> AwsClient:
        named.append(names)
        return stack.client

    monkeypatch.setattr(options, "open_client", open_client)
    return named


def submitted(headrace: Headrace, job: Path) -> tuple[str, str]:
    answer = headrace("submit", job, "--aws", "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    return said["run_id"], said["execution_arn"]


def test_a_submitted_job_is_followed_by_the_id_that_is_told(headrace: Headrace, job_file: Path) -> None:
    answer = headrace("submit", job_file, "--aws")
    assert answer.code == 0
    run_id = answer.out.split()[0]
    assert answer.out == f"{run_id} is started; follow it with: headrace watch {run_id} --aws\n"


def test_the_stack_the_region_and_the_profile_are_passed_on(
    headrace: Headrace, opened: list[tuple[str | None, ...]]
) -> None:
    headrace("ls", "--aws", "--stack", "mine", "--region", "eu-west-1", "--profile", "work")
    headrace("ls", "--aws")
    assert opened == [("mine", "eu-west-1", "work"), ("headrace", None, None)]


@pytest.mark.parametrize("option", LOCAL_ONLY)
def test_naming_a_stack_without_aws_is_a_mistake(headrace: Headrace, option: str) -> None:
    answer = headrace("ls", option, "mine")
    assert answer.code == 2
    assert "--stack, --region and --profile go together with --aws" in answer.err


def test_submitting_to_nothing_names_the_two_ways(headrace: Headrace, job_file: Path) -> None:
    answer = headrace("submit", job_file)
    assert answer.code == 2
    assert "add --aws, or use `headrace run` here" in answer.err


def test_runs_of_the_stack_are_listed(headrace: Headrace, stack: Stack, job_file: Path) -> None:
    run_id, arn = submitted(headrace, job_file)
    stack.admit(arn)
    (listed,) = json.loads(headrace("ls", "--aws", "--json").out)["runs"]
    assert (listed["run_id"], listed["status"]) == (run_id, "RUNNING")
    assert json.loads(headrace("ls", "--json").out)["runs"] == []


def test_a_run_is_watched_to_its_receipt_and_its_status_is_the_exit_code(
    headrace: Headrace, stack: Stack, job_file: Path
) -> None:
    run_id, arn = submitted(headrace, job_file)
    stack.admit(arn)
    stack.meanwhile = [lambda: stack.end(run_id)]
    answer = headrace("watch", run_id, "--aws")
    assert answer.code == 0
    assert "SUCCEEDED" in answer.out
    stack.end(run_id, "FAILED")
    assert headrace("watch", run_id, "--aws").code == 1


def test_a_receipt_is_read_from_the_stack_or_said_to_be_missing(
    headrace: Headrace, stack: Stack, job_file: Path
) -> None:
    run_id, arn = submitted(headrace, job_file)
    stack.admit(arn)
    missing = headrace("receipt", run_id, "--aws")
    assert missing.code == 1
    assert f"`headrace watch {run_id} --aws` follows it" in missing.err
    stack.end(run_id)
    assert json.loads(headrace("receipt", "--aws", "--json").out)["receipt"]["run_id"] == run_id


def test_a_run_is_stopped_and_its_end_shown(headrace: Headrace, stack: Stack, job_file: Path) -> None:
    run_id, arn = submitted(headrace, job_file)
    stack.admit(arn)
    stack.meanwhile = [lambda: stack.end(run_id, "STOPPED")]
    answer = headrace("stop", run_id, "--aws")
    assert answer.code == 0
    assert f"stopping {run_id}" in answer.err
    assert "STOPPED" in answer.out
    assert stack.execution(arn)["status"] == "ABORTED"
    assert "is over since" in headrace("stop", run_id, "--aws").err


def test_a_job_for_this_machine_is_told_what_to_change(headrace: Headrace, job_file: Path) -> None:
    job_file.write_text(json.dumps({**json.loads(job_file.read_text()), "data": {"source": "digits"}}))
    answer = headrace("submit", job_file, "--aws")
    assert answer.code == 2
    assert "data: digits is not in S3" in answer.err
    assert "Traceback" not in answer.err
