"""Results are saved once they are settled, completely at the end, and never outside their prefix."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from headrace_agent import results as results_module
from headrace_agent import upload
from headrace_agent.result_files import FileState, Skipped, look
from headrace_agent.results import ResultsSaver
from headrace_agent.results_journal import ResultsJournal, SavedFile
from headrace_agent.s3 import open_bucket
from headrace_agent.snapshots import Snapshots
from tests.agent.surroundings import RESULTS_BUCKET, S3


class Saving:
    """A results folder and its saver, with time given by the test."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "results"
        self.root.mkdir()
        self.journal = ResultsJournal(folder / "journal.sqlite3")
        self.saver = ResultsSaver(self.root, open_bucket(RESULTS_BUCKET), "out/", self.journal, Snapshots(folder / "s"))
        self.writers: list[int] = []

    def write(self, path: str, body: bytes, mtime: float = 1_000_000.0) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        os.utime(target, (mtime, mtime))

    def at(self, now: float) -> None:
        self.saver.save_settled(lambda: self.writers, now, threading.Event())

    def end(self) -> dict[str, str]:
        return self.saver.save_all(time.monotonic(), threading.Event())


@pytest.fixture
def saving(tmp_path: Path, s3: S3) -> Iterator[Saving]:
    assert s3.keys(RESULTS_BUCKET) == []
    one = Saving(tmp_path)
    yield one
    one.saver.close()
    one.journal.close()


def test_a_file_is_saved_when_it_has_not_changed_for_two_seconds(saving: Saving, s3: S3) -> None:
    saving.write("deep/a.ckpt", b"one")
    saving.at(10.0)
    saving.at(11.9)
    assert s3.keys(RESULTS_BUCKET) == []
    saving.at(12.0)
    assert s3.get(RESULTS_BUCKET, "out/deep/a.ckpt") == b"one"
    assert saving.journal.totals() == (1, 3)


def test_a_file_that_changes_waits_again_and_one_rewritten_later_is_saved_again(saving: Saving, s3: S3) -> None:
    saving.write("a", b"one")
    saving.at(10.0)
    saving.write("a", b"two!", mtime=1_000_001.0)
    saving.at(12.5)
    assert s3.keys(RESULTS_BUCKET) == []
    saving.at(14.5)
    assert s3.get(RESULTS_BUCKET, "out/a") == b"two!"
    saving.write("a", b"3", mtime=1_000_002.0)
    saving.at(20.0)
    saving.at(22.0)
    assert s3.get(RESULTS_BUCKET, "out/a") == b"3"
    assert saving.journal.totals() == (1, 1)


def test_a_file_that_the_job_holds_open_for_writing_waits(saving: Saving, s3: S3) -> None:
    saving.write("a", b"part")
    saving.writers = [os.getpid()]
    with (saving.root / "a").open("r+b"):
        saving.at(10.0)
        saving.at(20.0)
        assert s3.keys(RESULTS_BUCKET) == []
    with (saving.root / "a").open("rb"):
        saving.at(30.0)
    assert s3.keys(RESULTS_BUCKET) == ["out/a"]


def test_at_the_end_everything_is_saved_at_once(saving: Saving, s3: S3) -> None:
    saving.write("a", b"")
    saving.write("b/c é+%.bin", os.urandom(100))
    assert saving.end() == {}
    assert s3.keys(RESULTS_BUCKET) == ["out/a", "out/b/c é+%.bin"]


def test_a_saved_file_that_is_deleted_stays_saved_and_listed(saving: Saving, s3: S3) -> None:
    saving.write("a", b"one")
    saving.end()
    (saving.root / "a").unlink()
    assert saving.end() == {}
    listed = list(saving.journal.files())
    assert [(one.path, one.key, one.sha256) for one in listed] == [("a", "out/a", hashlib.sha256(b"one").hexdigest())]
    assert s3.keys(RESULTS_BUCKET) == ["out/a"]


def test_links_pipes_and_unspeakable_names_are_left_out_with_a_reason(saving: Saving, s3: S3, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (saving.root / "file-link").symlink_to(secret / "key")
    (saving.root / "folder-link").symlink_to(secret)
    os.mkfifo(saving.root / "pipe")
    (saving.root / "new\nline").write_text("x")
    (saving.root / os.fsdecode(b"\xff")).write_text("x")
    saving.write("kept", b"x")
    assert saving.end() == {}
    assert s3.keys(RESULTS_BUCKET) == ["out/kept"]
    assert {one.path: one.reason for one in saving.saver.skipped} == {
        "file-link": "is a symbolic link, which is never followed",
        "folder-link": "is a symbolic link, which is never followed",
        "pipe": "is a special file (pipe, socket or device)",
        "new\nline": "its name holds a character that cannot be part of a key here",
        "?": "its name is not UTF-8",
    }


def test_a_key_longer_than_s3_takes_is_left_out(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 5)
    deep.mkdir(parents=True)
    (deep / ("f" * 30)).write_text("x")
    skipped: list[Skipped] = []
    assert list(look(tmp_path, "out/", skipped)) == []
    assert [one.reason for one in skipped] == ["its key would be longer than 1024 bytes"]


def test_a_large_file_is_saved_in_parts_and_verified_by_its_size(saving: Saving, s3: S3) -> None:
    body = os.urandom(upload.PART_BYTES * 2 + 5)
    saving.write("large", body)
    assert saving.end() == {}
    assert s3.get(RESULTS_BUCKET, "out/large") == body
    assert [one.etag.endswith("-3") for one in saving.journal.files()] == [True]


def test_a_file_written_while_it_is_saved_is_not_called_saved(
    saving: Saving, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving.write("a", b"one")
    real = upload.digests_of

    def interrupted(path: Path, part_bytes: int) -> upload.Digests:
        found = real(path, part_bytes)
        saving.write("a", b"two", mtime=1_000_009.0)
        return found

    monkeypatch.setattr(upload, "digests_of", interrupted)
    assert saving.end() == {"a": "a was written while it was being saved"}
    assert saving.journal.totals() == (0, 0)
    monkeypatch.setattr(upload, "digests_of", real)
    assert saving.end() == {}
    assert s3.get(RESULTS_BUCKET, "out/a") == b"two"


def test_an_object_with_other_bytes_is_not_called_saved(saving: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    saving.write("a", b"one")
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda store, key, _path, **_: real(store, key, b"two", use_multipart=False))
    assert saving.end() == {"a": "a and its object hold different bytes"}
    assert saving.journal.totals() == (0, 0)


def test_an_etag_that_is_no_md5_is_settled_by_reading_the_object_back(
    saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving.write("a", b"one")
    sha256 = hashlib.sha256(b"one").hexdigest()
    monkeypatch.setattr(upload, "digests_of", lambda *_: upload.Digests(sha256, "no such ETag"))
    monkeypatch.setattr(upload, "looks_like_md5", lambda _: False)
    assert saving.end() == {}
    assert [one.sha256 for one in saving.journal.files()] == [sha256]


@pytest.mark.parametrize("size_bytes", [0, 1, upload.PART_BYTES, upload.PART_BYTES + 1, 2 * upload.PART_BYTES])
def test_the_etag_that_s3_gives_is_known_beforehand(saving: Saving, size_bytes: int) -> None:
    saving.write("a", os.urandom(size_bytes))
    digests = upload.digests_of(saving.root / "a", upload.PART_BYTES)
    assert saving.end() == {}
    assert [(one.etag, one.sha256) for one in saving.journal.files()] == [(digests.etag, digests.sha256)]


def test_at_the_end_the_newest_is_saved_first(saving: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        saving.write(f"{number}", bytes(results_module.SMALL_BYTES + 1), mtime=1_000_000.0 + number % 3)
    order: list[str] = []
    real = upload.save

    def noted(store: S3Store, root: Path, file: FileState, key: str, snapshots: Snapshots) -> SavedFile:
        order.append(file.path)
        return real(store, root, file, key, snapshots)

    monkeypatch.setattr(results_module, "save", noted)
    assert saving.end() == {}
    assert order == ["2", "1", "0", "3"]


def test_many_small_files_are_saved_in_one_go(saving: Saving, s3: S3) -> None:
    for number in range(results_module.BATCH_FILES + 3):
        saving.write(f"{number:03d}", b"%d" % number)
    assert saving.end() == {}
    assert len(s3.keys(RESULTS_BUCKET)) == results_module.BATCH_FILES + 3
    assert saving.journal.totals()[0] == results_module.BATCH_FILES + 3


def test_a_sparse_file_is_saved_with_its_holes_as_zeros(saving: Saving, s3: S3) -> None:
    with (saving.root / "sparse").open("wb") as stream:
        stream.truncate(3 * upload.PART_BYTES)
        stream.seek(upload.PART_BYTES + 7)
        stream.write(b"data")
    assert saving.end() == {}
    assert s3.get(RESULTS_BUCKET, "out/sparse") == (saving.root / "sparse").read_bytes()


def test_saving_is_tried_again_until_its_time_is_over(saving: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    saving.write("a", b"one")
    monkeypatch.setattr(results_module, "FIRST_WAIT_SECONDS", 0.001)
    attempts: list[str] = []

    def fails_twice(*given: object) -> object:
        attempts.append("try")
        if len(attempts) <= 2:
            raise upload.NotSaved("not yet")
        return upload.save(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(results_module, "save", fails_twice)
    assert saving.saver.save_all(time.monotonic() + 30, threading.Event()) == {}
    assert len(attempts) == 3
