"""The Python API for a deployed stack, at moto: what is uploaded and started, and what is read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.aws.cloud import make_cloud
from headrace.client import AwsClient
from headrace.client.handle import RunRefused
from headrace.client.places import BadPlace
from headrace.domain.errors import CloudUnavailable, UnknownRun
from headrace.handlers import admit_run
from headrace.ports import Cloud
from tests.aws.moto_stack import RUN_BUCKET, MotoStack, moto_stack
from tests.report import samples

JOB = {
    "name": "digits",
    "data": {"source": "s3://datasets/digits/"},
    "results": "s3://experiments/digits",
    "code": "src",
    "command": ["python", "train.py"],
    "compute": {"instance_type": "c7i.large"},
}


@dataclass
class Stack:
    """A stack, a client of it, and what happens while the client waits for its next look."""

    moto: MotoStack
    cloud: Cloud
    client: AwsClient
    meanwhile: list[Any] = field(default_factory=list)

    def execution(self, arn: str) -> Any:
        return self.moto.clients.stepfunctions.describe_execution(executionArn=arn)

    def admit(self, arn: str) -> str:
        """Do what the execution's first state does; return the run's id."""
        given = json.loads(self.execution(arn)["input"])
        return str(admit_run.step({"execution_arn": arn, "given": given}, self.cloud)["run_id"])

    def end(self, run_id: str, status: str = "SUCCEEDED") -> None:
        key = f"runs/{run_id}/receipt-1.json"
        receipt = samples.receipt(status=status).model_copy(update={"run_id": run_id})
        self.cloud.objects.put(RUN_BUCKET, key, receipt.model_dump_json().encode())
        end = {"status": status, "report_key": key, "ended_at": "2026-11-30T12:00:00.000Z"}
        self.cloud.runs.update(run_id, "run", "run", end, {})


@pytest.fixture
def stack() -> Iterator[Stack]:
    with moto_stack() as moto:
        cloud = make_cloud(moto.settings, moto.clients)
        made = Stack(moto, cloud, AwsClient(cloud=cloud, pause=lambda _seconds: made.meanwhile.pop(0)()))
        yield made


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('hello')\n")
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(JOB))
    return path


def test_a_job_is_submitted_with_its_code_and_known_by_its_id_at_once(stack: Stack, job_file: Path) -> None:
    run = stack.client.submit(job_file)
    given = json.loads(stack.execution(run.execution_arn)["input"])
    assert given["job"]["code"].startswith(f"s3://{RUN_BUCKET}/code/")
    assert stack.cloud.objects.head(RUN_BUCKET, given["job"]["code"].removeprefix(f"s3://{RUN_BUCKET}/")).bytes > 0
    assert given["client_token"] in run.execution_arn
    assert run.snapshot() is None
    assert run.status() == "RUNNING"
    assert stack.admit(run.execution_arn) == run.id
    seen = run.snapshot()
    assert seen is not None
    assert (seen.row.trigger, seen.row.job_name) == ("console", "digits")


def test_results_may_be_named_apart(stack: Stack, job_file: Path) -> None:
    run = stack.client.submit(job_file, "s3://elsewhere/here")
    assert json.loads(stack.execution(run.execution_arn)["input"])["job"]["results"] == "s3://elsewhere/here"


def test_what_is_not_in_s3_is_refused_with_all_that_is_wrong(stack: Stack) -> None:
    job = {**JOB, "data": {"source": "./digits"}, "results": "local", "code": "s3://code/x.tar.gz"}
    with pytest.raises(BadPlace) as refused:
        stack.client.submit(job)
    assert str(refused.value).splitlines() == [
        "data: ./digits is not in S3, and machines on AWS reach nothing else; copy the files to a bucket (aws s3 sync) "
        "and name it as s3://bucket/prefix/",
        "results: this machine is not in S3, and machines on AWS reach nothing else; name a bucket as "
        "s3://bucket/prefix, in the job or with --results",
    ]
    assert (
        stack.moto.clients.stepfunctions.list_executions(stateMachineArn=f"{stack.moto.settings.machines}training_run")[
            "executions"
        ]
        == []
    )


def test_keys_that_only_this_machine_has_are_refused(stack: Stack) -> None:
    lake = {"source": "s3://lake/x/", "endpoint": "https://lake.example.org", "credentials": "env:LAKE"}
    with pytest.raises(BadPlace, match=r"credentials: env:LAKE is on this machine.*write the secret's ARN"):
        stack.client.submit({**JOB, "data": lake, "code": "s3://code/x.tar.gz"})


def test_a_run_is_waited_for_to_its_receipt(stack: Stack, job_file: Path) -> None:
    run = stack.client.submit(job_file)
    stack.meanwhile = [lambda: stack.admit(run.execution_arn), lambda: None, lambda: stack.end(run.id)]
    receipt = run.wait()
    assert (receipt.run_id, receipt.status) == (run.id, "SUCCEEDED")
    assert stack.meanwhile == []
    assert [seen.row.run_id for seen in stack.client.runs()] == [run.id]
    assert stack.client.run(run.id[:-3]).id == run.id


def test_an_execution_that_ends_before_there_is_a_run_says_where_to_look(stack: Stack, job_file: Path) -> None:
    run = stack.client.submit(job_file)
    stack.moto.clients.stepfunctions.stop_execution(executionArn=run.execution_arn)
    with pytest.raises(RunRefused, match=run.execution_arn):
        run.wait()


def test_a_stop_is_noted_once_and_ends_the_execution(stack: Stack, job_file: Path) -> None:
    run = stack.client.submit(job_file)
    stack.admit(run.execution_arn)
    run.stop("ann")
    run.stop("bob")
    seen = run.snapshot()
    assert seen is not None
    assert seen.row.stop_requested_by == "ann"
    assert stack.execution(run.execution_arn)["status"] == "ABORTED"


def test_runs_that_are_not_there_are_unknown(stack: Stack) -> None:
    with pytest.raises(UnknownRun, match="there are no runs yet"):
        stack.client.run()


def test_what_aws_refuses_is_told_in_words(stack: Stack, job_file: Path) -> None:
    stack.moto.clients.stepfunctions.delete_state_machine(stateMachineArn=f"{stack.moto.settings.machines}training_run")
    with pytest.raises(CloudUnavailable, match="AWS answered StartExecution: StateMachineDoesNotExist"):
        stack.client.submit(job_file)
