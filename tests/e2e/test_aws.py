"""From an upload to a receipt with the AWS adapters, at one moto server, with the real agent on every machine."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from headrace.domain.receipt import Receipt
from headrace.domain.run import RunRow
from tests.aws.moto_machines import REGION
from tests.aws.moto_stack import ROLE_ID, RUN_BUCKET
from tests.e2e.aws_site import AwsSite, aws_site
from tests.waiting import wait_until

FILES = 24
READER = "arn:aws:iam::210987654321:role/reader"
SECRET = "a-key-of-the-lake"
SCRIPT = """
import os, pathlib
data, results = pathlib.Path(os.environ["HEADRACE_DATA"]), pathlib.Path(os.environ["HEADRACE_RESULTS"])
files = sorted(path for path in data.rglob("*") if path.is_file())
(results / "sum.txt").write_text(f"{len(files)} {sum(path.stat().st_size for path in files)}")
"""
JOB: dict[str, Any] = {
    "name": "on-aws",
    "data": {"source": "s3://datasets/set/"},
    "results": "s3://experiments/on-aws",
    "code": f"s3://{RUN_BUCKET}/code/code.tar.gz",
    "command": ["python", "train.py"],
    "compute": {"instance_type": "c7i.large"},
    "demand": {"read_bytes_per_s": 1000},
    "storage": "fleet",
    "storage_nodes": 2,
    "duration_hours": 0.1,
}


def packed(script: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("train.py")
        member.size = len(script.encode())
        tar.addfile(member, io.BytesIO(script.encode()))
    return buffer.getvalue()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[AwsSite]:
    with aws_site(tmp_path) as made:
        s3 = made.stack.clients.session.client("s3", endpoint_url=made.stack.url)
        for bucket in ("datasets", "experiments"):
            s3.create_bucket(Bucket=bucket)
        for number in range(FILES):
            made.cloud.objects.put("datasets", f"set/{number % 3}/{number:03}.bin", bytes(1000 + number))
        made.cloud.objects.put(RUN_BUCKET, "code/code.tar.gz", packed(SCRIPT))
        yield made


def elsewhere(site: AwsSite) -> dict[str, Any]:
    """Make a bucket in another account and one at another S3; return the job's data and results in them.

    moto gives both to everyone here: it takes a request that is signed in its query to be of no account.
    """
    clients = site.stack.clients
    sts = clients.sts.assume_role(RoleArn=READER, RoleSessionName="setup")["Credentials"]
    there = boto3.Session(sts["AccessKeyId"], sts["SecretAccessKey"], sts["SessionToken"], REGION)
    theirs = there.client("s3", endpoint_url=site.stack.url)
    theirs.create_bucket(Bucket="theirs")
    for number in range(FILES):
        theirs.put_object(Bucket="theirs", Key=f"set/{number:03}.bin", Body=bytes(10))
    clients.session.client("s3", endpoint_url=site.stack.url).create_bucket(Bucket="lake")
    text = json.dumps({"access_key_id": "c", "secret_access_key": SECRET})
    arn = clients.secrets(REGION).create_secret(Name="lake", SecretString=text)["ARN"]
    inputs = [
        {**JOB["data"], "name": "own"},
        {"source": "s3://theirs/set/", "name": "theirs", "role": READER},
    ]
    return {"data": inputs, "results": {"to": "s3://lake/out", "endpoint": site.stack.url, "credentials": arn}}


def upload(site: AwsSite, **changes: Any) -> str:
    """Upload a job file and return the execution that the upload started, once it is over."""
    before = len(site.executions)
    site.cloud.objects.put(RUN_BUCKET, "jobs/on-aws.yaml", json.dumps({**JOB, **changes}).encode())
    wait_until(lambda: len(site.executions) > before)
    site.plane.wait(site.executions[-1], 90)
    return site.executions[-1]


def only_row(site: AwsSite) -> RunRow:
    (run_id,) = site.cloud.runs.run_ids()
    return RunRow.model_validate(site.cloud.runs.read(run_id, "run", "run"))


def receipt_of(site: AwsSite) -> Receipt:
    key = only_row(site).report_key
    assert key is not None
    return Receipt.model_validate_json(site.cloud.objects.get(RUN_BUCKET, key))


def test_an_upload_becomes_a_run_its_results_and_a_receipt(
    site: AwsSite, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    upload(site, **elsewhere(site))
    printed = capsys.readouterr().out
    metrics = [json.loads(line) for line in printed.splitlines() if '"_aws"' in line]
    row, receipt = only_row(site), receipt_of(site)
    assert receipt.reason is None, receipt.reason
    assert receipt.status == "SUCCEEDED"
    # A last word that comes when its node's key is gone is refused, and counted.
    assert [one["RunsSucceeded"] for one in metrics if "EventsRefused" not in one] == [[1.0]]
    assert row.trigger == "upload"
    total = sum(1000 + number for number in range(FILES)) + FILES * 10
    saved = site.cloud.objects.get("lake", f"out/{row.run_id}/sum.txt")
    assert saved.decode() == f"{2 * FILES} {total}"
    assert (row.dataset_files, row.dataset_bytes) == (2 * FILES, total)
    assert_nothing_is_left(site, row)
    assert_no_key_is_kept(site, row, printed, tmp_path)


def assert_no_key_is_kept(site: AwsSite, row: RunRow, printed: str, folder: Path) -> None:
    """See that the secret's key is in no object of the run, no row, no log line and no file of a machine."""
    keys = [one.key for one in site.cloud.objects.page(RUN_BUCKET, row.prefix).objects]
    texts = [site.cloud.objects.get(RUN_BUCKET, key) for key in keys]
    texts += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    kinds = ("run", "node", "event", "command")
    texts += [printed.encode(), *(str(site.cloud.runs.items(row.run_id, kind)).encode() for kind in kinds)]
    assert len(keys) > 5
    assert [text[:100] for text in texts if SECRET.encode() in text] == []


def assert_nothing_is_left(site: AwsSite, row: RunRow) -> None:
    nodes = site.cloud.fleets.list_nodes(row.run_id)
    assert sorted(node.role for node in nodes) == ["compute", "storage", "storage"]
    assert {node.life for node in nodes} == {"terminated"}
    assert all(node.ended_at is not None for node in nodes)
    booted = frozenset((node.run_id, node.node_id) for node in nodes)
    wait_until(lambda: not site.machines.processes.present(booted) & booted)
    assert site.cloud.objects.page(RUN_BUCKET, f"{row.prefix}nodes/{ROLE_ID}").objects == ()
    assert site.cloud.objects.page(RUN_BUCKET, f"{row.prefix}nodes/").objects == ()


def test_a_failing_command_ends_the_run_and_every_machine(site: AwsSite) -> None:
    site.cloud.objects.put(RUN_BUCKET, "code/code.tar.gz", packed(SCRIPT + "raise SystemExit(3)"))
    upload(site)
    receipt = receipt_of(site)
    saved = site.cloud.objects.get("experiments", f"on-aws/{only_row(site).run_id}/sum.txt")
    assert (receipt.status, saved.split()[0]) == ("FAILED", b"24")
    assert "exit code 3" in str(receipt.reason)
    assert_nothing_is_left(site, only_row(site))
