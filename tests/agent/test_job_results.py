"""The results of one job: within their grace, then the manifest, which tells the truth."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from obstore.store import S3Store

from headrace_agent import results as results_module
from headrace_agent import upload
from headrace_agent.job_results import folder_prefix
from tests.agent.surroundings import NODE_ID, PREFIX, RESULTS_BUCKET, RUN_BUCKET, S3, train_part
from tests.agent.works import results_of, work_for


def test_a_bucket_that_is_not_there_names_what_is_not_saved(tmp_path: Path, s3: S3) -> None:
    work, _ = work_for(tmp_path, "train", train=train_part(results_bucket="absent", results_grace_seconds=0.1))
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a").write_text("x")
    saved = results_of(work, tmp_path / "results").finish(5.0)
    assert saved.trouble
    assert saved.trouble.startswith("1 results are not saved: a (")
    assert s3.json(RUN_BUCKET, PREFIX + str(saved.manifest))["files"] == 0


def test_the_manifest_lists_every_file_in_parts_and_is_written_last(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace_agent.results_manifest.FILES_PER_PART", 2)
    work, _ = work_for(tmp_path, "train", train=train_part(results_prefix="team/out"))
    (tmp_path / "results").mkdir()
    for name in "abc":
        (tmp_path / "results" / name).write_text(name)
    (tmp_path / "results/link").symlink_to("a")
    saved = results_of(work, tmp_path / "results").finish(20.0)
    folder = f"results/{NODE_ID}"
    assert (saved.manifest, saved.files, saved.bytes, saved.trouble) == (f"{folder}/manifest.json", 3, 3, None)
    manifest = s3.json(RUN_BUCKET, f"{PREFIX}{folder}/manifest.json")
    assert (manifest["bucket"], manifest["prefix"]) == (RESULTS_BUCKET, "team/out/")
    assert manifest["parts"] == [f"{folder}/part-00000.json", f"{folder}/part-00001.json"]
    assert manifest["skipped"] == ["link: is a symbolic link, which is never followed"]
    listed = [file for part in manifest["parts"] for file in s3.json(RUN_BUCKET, PREFIX + part)["files"]]
    assert [file["key"] for file in listed] == ["team/out/a", "team/out/b", "team/out/c"]
    assert s3.keys(RESULTS_BUCKET) == ["team/out/a", "team/out/b", "team/out/c"]


def test_a_store_that_never_answers_is_waited_for_no_longer_than_the_grace(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3.keys(RESULTS_BUCKET) == []
    never, is_over = threading.Event(), threading.Event()

    def hang(_store: S3Store, *_: object) -> object:
        never.wait(60)
        is_over.set()
        raise upload.NotSaved("hung")

    monkeypatch.setattr(results_module, "save", hang)
    work, _ = work_for(tmp_path, "train", train=train_part())
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a").write_text("x")
    saved = results_of(work, tmp_path / "results").finish(0.2)
    assert not is_over.is_set(), "the request was waited for"
    never.set()
    assert (saved.manifest, saved.trouble) == (None, "results were not saved within 0.2 seconds")


@pytest.mark.parametrize(("given", "used"), [("", ""), ("out", "out/"), ("out/", "out/"), ("a/b", "a/b/")])
def test_a_prefix_is_that_of_a_folder(given: str, used: str) -> None:
    assert folder_prefix(given) == used
