"""Staging: every file verified, or a reason why not."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import boto3
import pytest

from headrace_agent import copier, download, fetch, large_file
from headrace_agent.data_index import write_index
from headrace_agent.http_connection import Connection
from headrace_agent.stage import TEMPORARY_FOLDER, run_stage, target_volume
from headrace_agent.work import Work
from tests.agent.surroundings import DATASET_BUCKET, PREFIX, RUN_BUCKET, S3, config, digest_of, stage_part, volume
from tests.agent.works import Said, process_node, work_for

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def no_waiting_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "FIRST_WAIT_SECONDS", 0.0)


def staged(folder: Path, stage: dict[str, Any], **changes: Any) -> tuple[tuple[str, dict[str, Any]], Said]:
    work, said = work_for(folder, "stage", stage=stage, **changes)
    outcome = run_stage(work)
    assert outcome
    return (outcome.detail_type, outcome.body), said


def one_file(s3: S3, key: str, path: str, body: bytes = b"x", **changes: Any) -> dict[str, Any]:
    """Return a stage part for one object, whose entry in the manifest is changed."""
    etag = s3.put(DATASET_BUCKET, key, body)
    entry = {"source": f"s3://{DATASET_BUCKET}/{key}", "path": path, "bytes": len(body), "etag": etag} | changes
    s3.put(RUN_BUCKET, f"{PREFIX}p.json", json.dumps({"files": [entry]}))
    return {"parts": ["p.json"], "files": 1, "bytes": entry["bytes"], "progress_seconds": 10}


def found_files(root: Path) -> dict[str, bytes]:
    return {str(one.relative_to(root)): one.read_bytes() for one in root.rglob("*") if one.is_file()}


def test_every_file_is_there_with_its_bytes_read_only_and_nothing_else(tmp_path: Path, s3: S3) -> None:
    files = {
        "a": b"",
        "deep/er/b c+%25&é日本.bin": os.urandom(300_000),
        "mid": os.urandom(3 * MIB),
        "deep/#?~": b"1",
    }
    (kind, body), said = staged(tmp_path, stage_part(s3, files))
    assert (kind, body) == (
        "Dataset Staged",
        {"files": 4, "bytes": sum(map(len, files.values())), "digest": digest_of(files)},
    )
    assert found_files(tmp_path / "volumes" / "v0") == files
    assert (tmp_path / "volumes/v0/mid").stat().st_mode & 0o777 == 0o444
    last = said.bodies("Dataset Progress")[-1]
    assert (last["files"], last["total_files"], last["bytes"]) == (4, 4, body["bytes"])


def test_a_large_object_is_read_in_ranges_and_is_whole(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copier, "RANGED_ABOVE_BYTES", 2 * MIB)
    monkeypatch.setattr(large_file, "SPAN_BYTES", MIB)
    files = {"large": os.urandom(4 * MIB + 17)}
    (kind, _), _ = staged(tmp_path, stage_part(s3, files))
    assert kind == "Dataset Staged"
    assert found_files(tmp_path / "volumes/v0") == files


def test_a_restarted_staging_copies_only_what_is_not_there(tmp_path: Path, s3: S3) -> None:
    stage = stage_part(s3, {"a": b"aa", "b": b"bb", "c": b"cc"})
    staged(tmp_path, stage)
    root = tmp_path / "volumes/v0"
    before = {name: (root / name).stat().st_ino for name in "abc"}
    (root / "b").unlink()
    (root / "c").unlink()
    (root / "c").write_bytes(b"torn at a")
    (kind, _), _ = staged(tmp_path, stage)
    assert kind == "Dataset Staged"
    assert found_files(root) == {"a": b"aa", "b": b"bb", "c": b"cc"}
    assert (root / "a").stat().st_ino == before["a"]


def test_an_object_that_changed_since_it_was_listed_fails_and_is_named(tmp_path: Path, s3: S3) -> None:
    stage = one_file(s3, "in/a", "a", b"old!")
    s3.put(DATASET_BUCKET, "in/a", b"new!")
    (kind, body), _ = staged(tmp_path, stage)
    assert (kind, body["missing"]) == ("Dataset Failed", ["a"])
    assert "a: s3://datasets/in/a: it changed since it was listed (its ETag is not " in body["reason"]
    assert found_files(tmp_path / "volumes/v0") == {}


def test_an_object_of_another_size_fails_even_when_the_manifest_has_no_etag(tmp_path: Path, s3: S3) -> None:
    (kind, body), _ = staged(tmp_path, one_file(s3, "in/a", "a", b"1234", bytes=5, etag=""))
    assert kind == "Dataset Failed"
    assert "(5 bytes, now 4)" in body["reason"]


def test_bytes_that_are_not_the_etags_fail_after_several_attempts(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = download._write

    def corrupt(descriptor: int, piece: memoryview, offset: int) -> None:
        piece[0] = ord("X")
        real(descriptor, piece, offset)

    monkeypatch.setattr(download, "_write", corrupt)
    (kind, body), _ = staged(tmp_path, one_file(s3, "in/a", "a", b"right") | {"is_hashed": True})
    assert kind == "Dataset Failed"
    assert "could not be read in 10 attempts; the last said: the bytes that came have MD5" in body["reason"]


def test_an_absent_object_is_named_and_the_others_are_still_copied(tmp_path: Path, s3: S3) -> None:
    stage = stage_part(s3, {"a": b"a", "b": b"b"})
    part = s3.json(RUN_BUCKET, f"{PREFIX}stage/part-00000.json")
    part["files"].insert(0, part["files"][0] | {"source": f"s3://{DATASET_BUCKET}/in/gone", "path": "gone"})
    s3.put(RUN_BUCKET, f"{PREFIX}stage/part-00000.json", json.dumps(part))
    (kind, body), _ = staged(tmp_path, stage)
    assert (kind, body["missing"]) == ("Dataset Failed", ["gone"])
    assert body["reason"] == "gone: s3://datasets/in/gone: it is no longer there"
    assert found_files(tmp_path / "volumes/v0") == {"a": b"a", "b": b"b"}


def test_at_most_twenty_missing_files_are_named(tmp_path: Path, s3: S3) -> None:
    entry = {"source": f"s3://{DATASET_BUCKET}/in/gone", "bytes": 1, "etag": ""}
    listed = [entry | {"path": f"{number}-" + "é" * 100} for number in range(60)]
    s3.put(RUN_BUCKET, f"{PREFIX}p.json", json.dumps({"files": listed}))
    (_, body), _ = staged(tmp_path, {"parts": ["p.json"], "files": 60, "bytes": 60, "progress_seconds": 10})
    assert len(body["missing"]) == 20
    assert len(json.dumps(body)) < 12_000


@pytest.mark.parametrize("path", ["../escaped", "/escaped", "a/../../escaped", f"{TEMPORARY_FOLDER}/x", "a//b", ""])
def test_a_path_that_would_leave_the_volume_is_refused(tmp_path: Path, s3: S3, path: str) -> None:
    (kind, body), _ = staged(tmp_path, one_file(s3, "in/a", path))
    assert (kind, body["missing"]) == ("Dataset Failed", [path])
    assert not list(tmp_path.rglob("escaped"))


def test_a_symbolic_link_in_the_volume_leads_nowhere(tmp_path: Path, s3: S3) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "volumes/v0").mkdir(parents=True)
    (tmp_path / "volumes/v0/link").symlink_to(outside)
    (kind, body), _ = staged(tmp_path, one_file(s3, "in/a", "link/x"))
    assert (kind, body["missing"]) == ("Dataset Failed", ["link/x"])
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("key", ["/in/a", "in//a", "in/../a"])
def test_a_key_that_would_be_read_as_another_is_refused(tmp_path: Path, s3: S3, key: str) -> None:
    s3.put(DATASET_BUCKET, "in/a", b"x")
    entry = {"source": f"s3://{DATASET_BUCKET}/{key}", "path": "a", "bytes": 1, "etag": ""}
    s3.put(RUN_BUCKET, f"{PREFIX}p.json", json.dumps({"files": [entry]}))
    (kind, body), _ = staged(tmp_path, {"parts": ["p.json"], "files": 1, "bytes": 1, "progress_seconds": 10})
    assert kind == "Dataset Failed"
    assert "which this agent cannot address" in body["reason"]


def test_parts_that_hold_less_than_was_announced_fail(tmp_path: Path, s3: S3) -> None:
    (kind, body), _ = staged(tmp_path, stage_part(s3, {"a": b"a"}) | {"files": 2})
    assert kind == "Dataset Failed"
    assert "announces 2 files of 1 bytes, and the parts it names hold 1 files of 1 bytes" in body["reason"]


@pytest.mark.usefixtures("s3")
def test_an_absent_part_fails_in_one_line(tmp_path: Path) -> None:
    (kind, body), _ = staged(tmp_path, {"parts": ["nope.json"], "files": 1, "bytes": 1, "progress_seconds": 10})
    assert kind == "Dataset Failed"
    assert "runs/run-1/nope.json" in body["reason"]
    assert "\n" not in body["reason"]


def test_told_to_stop_it_reports_no_outcome_and_leaves_no_temporary_file(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, said = work_for(tmp_path, "stage", stage=stage_part(s3, {"a": b"a", "b": b"b"}))

    def hang(connection: Connection, *_: Any) -> None:
        work.stop.raise_for("enough")
        while not connection._is_aborted:
            threading.Event().wait(0.01)
        raise ConnectionAbortedError

    monkeypatch.setattr(fetch, "download", hang)
    assert run_stage(work) is None
    assert {kind for kind, _ in said.events} <= {"Dataset Progress"}
    assert list((tmp_path / "volumes/v0").iterdir()) == []


def test_a_storage_process_node_records_that_it_did_not_seal(tmp_path: Path, s3: S3) -> None:
    staged(tmp_path, stage_part(s3, {"a": b"a"}), role="storage")
    recorded = (tmp_path / "not-executed.jsonl").read_text()
    assert "umount" in recorded
    assert "mdadm --stop /dev/md/run-1-v0" in recorded


def test_on_a_machine_nothing_is_written_where_nothing_is_mounted(tmp_path: Path, s3: S3) -> None:
    work, _ = work_for(tmp_path, "stage", stage=stage_part(s3, {"a": b"a"}))
    machine = Work(work.node.__class__(**{**work.node.__dict__, "process_node": False}), work.task, work.say)
    outcome = run_stage(machine)
    assert outcome
    assert "nothing is mounted on" in outcome.body["reason"]
    assert not (tmp_path / "volumes/v0/a").exists()


def test_the_volume_hydrated_here_is_filled_else_the_first_of_the_data_set() -> None:
    from headrace_agent.config import parse_config  # noqa: PLC0415 - used here only

    def chosen(*volumes: dict[str, Any]) -> str:
        return target_volume(parse_config(json.dumps(config(volumes=list(volumes)))))

    elsewhere, here = volume("a", hydrated_here=False), volume("b")
    assert chosen(elsewhere, here) == "b"
    assert chosen(volume("s", kind="scratch"), elsewhere) == "a"


def test_what_is_staged_is_listed_in_an_index_with_the_versions_that_were_read(tmp_path: Path, s3: S3) -> None:
    client = boto3.client("s3", endpoint_url=s3.url)
    client.put_bucket_versioning(Bucket=DATASET_BUCKET, VersioningConfiguration={"Status": "Enabled"})
    staged(tmp_path, stage_part(s3, {"b/é": b"bb", "a": b"a"}, index="staging/compute-0/index.jsonl"))
    lines = s3.get(RUN_BUCKET, f"{PREFIX}staging/compute-0/index.jsonl").decode().splitlines()
    listed = [json.loads(line) for line in lines]
    assert [(one["path"], one["bytes"], one["source"]) for one in listed] == [
        ("a", 1, f"s3://{DATASET_BUCKET}/in/a"),
        ("b/é", 2, f"s3://{DATASET_BUCKET}/in/b/é"),
    ]
    assert all(len(one["etag"]) == 32 and len(one["version"]) > 8 for one in listed)
    write_index(process_node(tmp_path), ["staging/compute-0/index.jsonl", "stage/part-00000.json"], tmp_path / "index")
    again = [json.loads(line) for line in (tmp_path / "index").read_text().splitlines()]
    assert again[:2] == listed
    assert sorted(again[2:], key=lambda one: str(one["path"])) == [one | {"version": ""} for one in listed]
