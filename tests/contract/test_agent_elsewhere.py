"""Agent and control plane reach the same bucket at another S3, with the same keys, and see the same objects there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.access import BucketAccess
from headrace.domain.dataset import DatasetFile, DatasetPart
from headrace.local.elsewhere import LocalElsewhere
from headrace.ports import Objects
from headrace_agent import upload
from headrace_agent.code_folder import fetch_code
from headrace_agent.reach import reach_of
from headrace_agent.stage import run_stage
from headrace_agent.train import run_train
from tests.agent.conftest import s3, s3_url
from tests.agent.surroundings import PREFIX, RUN_BUCKET, S3, train_part
from tests.agent.works import results_of, work_for
from tests.local.s3 import RunningS3, running_s3

__all__ = ["s3", "s3_url"]

DATA = {"set/a": "a" * 100, "set/b c+é": "b c+é" * 100, "src/train.py": "1"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningS3]:
    folder = tmp_path_factory.mktemp("lake")
    for name, text in DATA.items():
        (folder / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "data" / name).write_text(text)
    with running_s3(folder) as running:
        yield running


def keys_of(lake: RunningS3, secret: str | None = None) -> str:
    keys = {
        "access_key_id": lake.endpoint.access_key_id,
        "secret_access_key": secret or lake.endpoint.secret_access_key,
    }
    return json.dumps(keys)


def buckets(lake: RunningS3) -> list[BucketAccess]:
    given = {"endpoint": lake.endpoint.url, "credentials": "env:LAKE", "signing_region": "auto"}
    return [BucketAccess(bucket=name, **given) for name in ("data", "results")]


@contextmanager
def both(lake: RunningS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Objects, list[dict[str, Any]]]]:
    """Yield the control plane's view of the results, and the configuration's part for the agent."""
    monkeypatch.setenv("LAKE", keys_of(lake))
    accesses = buckets(lake)
    yield LocalElsewhere({"LAKE": keys_of(lake)}).objects(accesses[1], "run-1"), [one.model_dump() for one in accesses]


def test_what_the_control_plane_lists_is_what_the_agent_stages(
    lake: RunningS3, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with both(lake, monkeypatch) as (objects, given):
        listed = objects.page("data", "set/").objects
        files = [
            DatasetFile(source=f"s3://data/{one.key}", path=one.key, bytes=one.bytes, etag=one.etag) for one in listed
        ]
        s3.put(RUN_BUCKET, f"{PREFIX}p.json", DatasetPart(files=tuple(files)).model_dump_json())
        total = sum(one.bytes for one in listed)
        stage = {"parts": ["p.json"], "files": 2, "bytes": total, "progress_seconds": 10}
        work, _ = work_for(tmp_path, "stage", stage=stage, buckets=given)
        outcome = run_stage(work)
    assert outcome is not None
    assert (outcome.detail_type, outcome.body["bytes"]) == ("Dataset Staged", total)
    assert (tmp_path / "volumes/v0/set/b c+é").read_text() == DATA["set/b c+é"]


def test_what_the_agent_saves_whole_and_in_parts_is_what_the_control_plane_checks(
    lake: RunningS3, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "PART_BYTES", 6 * 1024**2)
    bodies = {"small.bin": b"12", "large.bin": bytes(7 * 1024**2)}
    (tmp_path / "results").mkdir()
    for name, body in bodies.items():
        (tmp_path / "results" / name).write_bytes(body)
    with both(lake, monkeypatch) as (objects, given):
        train = train_part(results_bucket="results")
        work, _ = work_for(tmp_path, "train", train=train, buckets=given)
        saved = results_of(work, tmp_path / "results").finish(20.0)
        assert (saved.trouble, saved.files) == (None, 2)
        part = s3.json(RUN_BUCKET, f"{PREFIX}results/node-a/part-00000.json")
        for file in part["files"]:
            found = objects.head("results", file["key"])
            assert (found.bytes, found.etag) == (len(bodies[file["path"]]), file["etag"])


def test_code_that_lies_there_is_brought_from_there(
    lake: RunningS3, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del s3
    (tmp_path / "work").mkdir()
    with both(lake, monkeypatch) as (_, given):
        work, _ = work_for(tmp_path, "train", train=train_part(), buckets=given)
        fetch_code("s3://data/src/", tmp_path / "work", reach_of(work.node, work.task.config))
    assert (tmp_path / "work" / "train.py").read_text() == "1"


def test_a_job_whose_results_could_not_be_saved_is_not_begun(
    lake: RunningS3, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del s3
    monkeypatch.delenv("LAKE", raising=False)
    given = [one.model_dump() for one in buckets(lake)]
    work, said = work_for(tmp_path, "train", train=train_part(results_bucket="results"), buckets=given)
    outcome = run_train(work)
    assert outcome.detail_type == "Job Failed"
    assert outcome.body["reason"].startswith("results could not be saved: the variable LAKE")
    assert said.events == []


def test_data_that_may_not_be_read_are_told_and_no_key_is_shown(
    lake: RunningS3, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = DatasetPart(files=(DatasetFile(source="s3://data/set/a", path="a", bytes=100, etag=""),))
    s3.put(RUN_BUCKET, f"{PREFIX}p.json", part.model_dump_json())
    monkeypatch.setenv("LAKE", keys_of(lake, secret="another-secret"))
    stage = {"parts": ["p.json"], "files": 1, "bytes": 100, "progress_seconds": 10}
    work, _ = work_for(tmp_path, "stage", stage=stage, buckets=[one.model_dump() for one in buckets(lake)])
    outcome = run_stage(work)
    assert outcome is not None
    assert outcome.detail_type == "Dataset Failed"
    assert "may not read it (403 SignatureDoesNotMatch)" in json.dumps(outcome.body)
    assert "another-secret" not in json.dumps(outcome.body)
