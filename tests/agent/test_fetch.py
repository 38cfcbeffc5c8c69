"""Copying one object from an S3 that misbehaves."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace_agent import copier, fetch, http_connection, large_file
from headrace_agent.config import StageTask
from headrace_agent.copier import Copier
from headrace_agent.dataset import DatasetFile
from headrace_agent.fetch import FetchFailed
from headrace_agent.s3 import S3Address
from headrace_agent.stage_state import StagedSpan, StageState
from headrace_agent.stage_tally import StageTally
from tests.agent.odd_s3 import OddS3, serving


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[OddS3]:
    one = OddS3()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(fetch, "FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(copier, "RANGED_ABOVE_BYTES", 4000)
    monkeypatch.setattr(large_file, "SPAN_BYTES", 1000)
    with serving(one) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        yield one


def copying_of(
    odd: OddS3, folder: Path, etag: str | None = None, *, is_hashed: bool = True
) -> tuple[Copier, StageTally]:
    """Return what copies the one object into `folder/k`."""
    (folder / "temporary").mkdir(exist_ok=True)
    wanted = DatasetFile(S3Address("b", "k"), "k", len(odd.body), odd.etag if etag is None else etag)
    state, tally = StageState(folder / "state.sqlite3", "task"), StageTally(StageTask((), 1, len(odd.body), 1.0))
    copying = Copier(
        iter([wanted]), folder.joinpath, folder / "temporary", state, tally, streams=8, is_hashed=is_hashed
    )
    return copying, tally


def fetched(odd: OddS3, folder: Path, etag: str | None = None) -> bytes:
    """Return what the copied file holds; nothing temporary may be left. Raises FetchFailed with the reason."""
    copying, tally = copying_of(odd, folder, etag)
    copying.start()
    while not copying.is_over(1.0):
        pass
    if tally.failures:
        raise FetchFailed(tally.failures["k"])
    assert list((folder / "temporary").iterdir()) == []
    assert tally.bytes == len(odd.body)
    return (folder / "k").read_bytes()


@pytest.mark.parametrize("fault", ["500", "503", "429", "cut", "flipped"])
@pytest.mark.parametrize("size", [100, 4500])
def test_a_passing_fault_is_read_over(odd: OddS3, tmp_path: Path, fault: str, size: int) -> None:
    odd.body, odd.faults = os.urandom(size), [fault]
    assert fetched(odd, tmp_path) == odd.body


def test_a_lasting_server_error_fails_and_is_named(odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "ATTEMPTS", 2)
    odd.body, odd.faults = b"x", ["500"] * 20
    with pytest.raises(FetchFailed, match=r"s3://b/k: could not be read in 2 attempts; the last said: .*500"):
        fetched(odd, tmp_path)
    assert len(odd.asked) == 2
    assert not (tmp_path / "k").exists()


def test_an_object_that_was_archived_meanwhile_is_named_as_such(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.faults = b"x", ["archived"] * 5
    with pytest.raises(FetchFailed, match="s3://b/k: it is archived; restore it first"):
        fetched(odd, tmp_path)
    assert len(odd.asked) == 1


def test_an_object_that_may_not_be_read_is_not_asked_for_again(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.faults = b"x", ["403"] * 5
    with pytest.raises(FetchFailed, match="s3://b/k: this machine's role may not read it"):
        fetched(odd, tmp_path)
    assert len(odd.asked) == 1


@pytest.mark.parametrize("size", [100, 4500])
def test_a_full_disk_is_named_at_once(odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    odd.body = os.urandom(size)
    with pytest.raises(FetchFailed, match=r"volume is full; ask for more storage: .*No space left on device"):
        fetched(odd, tmp_path)


def test_an_object_that_changes_between_two_of_its_ranges_is_not_mixed(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.faults = os.urandom(5000), ["", "", "other"]
    with pytest.raises(FetchFailed, match="it changed since it was listed"):
        fetched(odd, tmp_path)
    assert not (tmp_path / "k").exists()


def test_a_large_object_is_asked_for_in_ranges(odd: OddS3, tmp_path: Path) -> None:
    odd.body = os.urandom(4500)
    assert fetched(odd, tmp_path) == odd.body
    assert sorted(map(str, odd.asked)) == [f"bytes={start}-{min(start + 999, 4499)}" for start in range(0, 4500, 1000)]


def test_an_endpoint_that_answers_ranges_with_200_is_asked_for_whole_objects(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.status_of_ranges = os.urandom(4500), 200
    assert fetched(odd, tmp_path) == odd.body
    assert odd.asked.count(None) == 1


def test_a_silent_endpoint_is_not_waited_for_for_ever(
    odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ATTEMPTS", 1)
    monkeypatch.setattr(http_connection, "SILENCE_SECONDS", 0.05)
    odd.body = b"x"
    with odd.lock, pytest.raises(FetchFailed, match="could not be read in 1 attempts"):
        fetched(odd, tmp_path)


def test_an_etag_that_a_key_service_made_is_not_taken_for_an_md5(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.encryption, odd.etag_given = b"sealed", "aws:kms", "0" * 32
    assert fetched(odd, tmp_path) == b"sealed"


def test_an_endpoint_that_is_busy_for_long_is_asked_again_more_often_than_one_that_fails(
    odd: OddS3, tmp_path: Path
) -> None:
    odd.body, odd.faults = b"x", ["503"] * (3 * fetch.ATTEMPTS)
    assert fetched(odd, tmp_path) == b"x"
    assert len(odd.asked) == 3 * fetch.ATTEMPTS + 1


def test_an_endpoint_that_is_always_busy_is_given_up(
    odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "BUSY_SECONDS", 0.0)
    odd.body, odd.faults = b"x", ["503"] * 5
    with pytest.raises(FetchFailed, match="in 1 attempts; the last said: the endpoint answered 503"):
        fetched(odd, tmp_path)


def test_spans_of_a_large_object_that_came_before_a_kill_are_not_asked_for_again(odd: OddS3, tmp_path: Path) -> None:
    odd.body = os.urandom(4500)
    first, _ = copying_of(odd, tmp_path)
    odd.faults = ["", "", "403"]
    first.start()
    while not first.is_over(1.0):
        pass
    files, spans = first.take_finished()
    assert files == []
    assert spans
    StageState(tmp_path / "state.sqlite3", "task").record(files, spans)
    came = {span.start for span in spans}
    odd.asked.clear()
    odd.faults.clear()
    assert fetched(odd, tmp_path) == odd.body
    begins = {int(str(asked).removeprefix("bytes=").split("-")[0]) for asked in odd.asked}
    assert begins == set(range(0, 4500, 1000)) - came


def test_a_large_file_that_is_gone_is_read_anew_whatever_is_known_of_its_spans(odd: OddS3, tmp_path: Path) -> None:
    odd.body = os.urandom(4500)
    first, _ = copying_of(odd, tmp_path)
    odd.faults = ["", "", "403"]
    first.start()
    while not first.is_over(1.0):
        pass
    StageState(tmp_path / "state.sqlite3", "task").record(*first.take_finished())
    for part in (tmp_path / "temporary").iterdir():
        part.unlink()
    odd.faults.clear()
    assert fetched(odd, tmp_path) == odd.body


def test_spans_that_an_agent_of_another_span_size_recorded_do_not_count(
    odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.body = os.urandom(4500)
    first, _ = copying_of(odd, tmp_path)
    odd.faults = ["", "", "403"]
    first.start()
    while not first.is_over(1.0):
        pass
    part = first.take_finished()[1][0].part
    (tmp_path / "temporary" / part).write_bytes(odd.body[:1000].ljust(4500, b"\0"))
    StageState(tmp_path / "state.sqlite3", "task").record([], [StagedSpan(part, 0)])
    odd.faults.clear()
    monkeypatch.setattr(large_file, "SPAN_BYTES", 2000)
    later, _ = copying_of(odd, tmp_path, is_hashed=False)
    later.start()
    while not later.is_over(1.0):
        pass
    assert (tmp_path / "k").read_bytes() == odd.body


def test_as_long_as_nothing_came_no_look_waits_long(odd: OddS3, tmp_path: Path) -> None:
    odd.body = b"x"
    copying, _ = copying_of(odd, tmp_path)
    with odd.lock:
        copying.start()
        assert not copying.is_over(600.0)
        copying.stop()


def test_a_copy_that_is_told_to_stop_waits_for_no_answer(odd: OddS3, tmp_path: Path) -> None:
    odd.body = b"x"
    copying, tally = copying_of(odd, tmp_path)
    with odd.lock:
        copying.start()
        copying.stop()
    assert copying.is_over(0.0)
    assert tally.files == 0
    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize("size", [100, 4500])
@pytest.mark.parametrize(("peer", "is_read_again"), [("127.0.0.1", False), ("192.0.2.1", True)])
def test_an_md5_is_compared_by_itself_only_where_bytes_come_over_a_wire_in_the_clear(
    odd: OddS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peer: str, size: int, is_read_again: bool
) -> None:
    monkeypatch.setattr(http_connection, "_peer_of", lambda _: peer)
    odd.body, odd.faults = os.urandom(size), ["flipped"] * (size // 1000 + 1)
    copying, _ = copying_of(odd, tmp_path, is_hashed=False)
    copying.start()
    while not copying.is_over(1.0):
        pass
    assert ((tmp_path / "k").read_bytes() == odd.body) is is_read_again
