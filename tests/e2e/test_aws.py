"""From an upload to a receipt with the AWS adapters, at one moto server, with the real agent on every machine."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.receipt import Receipt
from headrace.domain.run import RunRow
from tests.aws.moto_stack import ROLE_ID, RUN_BUCKET
from tests.e2e.aws_site import AwsSite, aws_site
from tests.waiting import wait_until

FILES = 24
SCRIPT = """
import os, pathlib
data, results = pathlib.Path(os.environ["HEADRACE_DATA"]), pathlib.Path(os.environ["HEADRACE_RESULTS"])
files = sorted(path for path in data.rglob("*") if path.is_file())
(results / "sum.txt").write_text(f"{len(files)} {sum(path.stat().st_size for path in files)}")
"""
JOB = {
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


def test_an_upload_becomes_a_run_its_results_and_a_receipt(site: AwsSite, capsys: pytest.CaptureFixture[str]) -> None:
    upload(site)
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [one["RunsSucceeded"] for one in metrics] == [[1.0]]
    row, receipt = only_row(site), receipt_of(site)
    assert (receipt.status, receipt.reason) == ("SUCCEEDED", None)
    assert row.trigger == "upload"
    total = sum(1000 + number for number in range(FILES))
    saved = site.cloud.objects.get("experiments", f"on-aws/{row.run_id}/sum.txt")
    assert saved.decode() == f"{FILES} {total}"
    assert (row.dataset_files, row.dataset_bytes) == (FILES, total)
    assert_nothing_is_left(site, row)


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
    site.cloud.objects.put(RUN_BUCKET, "code/code.tar.gz", packed("import sys; sys.exit(3)"))
    upload(site)
    receipt = receipt_of(site)
    assert receipt.status == "FAILED"
    assert "exit code 3" in str(receipt.reason)
    assert_nothing_is_left(site, only_row(site))
