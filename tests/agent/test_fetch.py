"""Copying one object from an S3 that misbehaves."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace_agent import download, fetch
from headrace_agent.dataset import DatasetFile
from headrace_agent.fetch import Fetcher, FetchFailed
from headrace_agent.s3 import S3Address

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


ARCHIVED = b"<Error><Code>InvalidObjectState</Code><StorageClass>GLACIER</StorageClass></Error>"


@dataclass
class OddS3:
    """An S3 with one object; `faults` are taken one per request, then it behaves."""

    body: bytes = b""
    faults: list[str] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)
    status_of_ranges: int = 206
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def etag(self) -> str:
        return hashlib.md5(self.body, usedforsecurity=False).hexdigest()

    def fault(self, asked: str | None) -> str:
        with self.lock:
            self.asked.append(asked)
            return self.faults.pop(0) if self.faults else ""


class PatientServer(ThreadingHTTPServer):
    """A server whose clients may leave early."""

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that left."""


def handler_of(odd: OddS3) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            fault = odd.fault(asked)
            found = RANGE.match(asked or "")
            start, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(odd.body))
            data = ARCHIVED if fault == "archived" else odd.body[start:end]
            fault = "403" if fault == "archived" else fault
            self.send_response(int(fault) if fault.isdigit() else odd.status_of_ranges if found else 200)
            self.send_header("ETag", '"0123456789abcdef0123456789abcdef"' if fault == "other" else f'"{odd.etag}"')
            self.send_header("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")
            self.send_header("Content-Length", str(len(data)))
            if found:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(odd.body)}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write({"cut": data[:-1], "flipped": b"X" + data[1:]}.get(fault, data))
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    return Handler


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[OddS3]:
    one = OddS3()
    server = PatientServer(("127.0.0.1", 0), handler_of(one))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(fetch, "FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(download, "RANGED_ABOVE_BYTES", 4000)
    monkeypatch.setattr(download, "RANGE_BYTES", 1000)
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def fetched(odd: OddS3, folder: Path, etag: str | None = None) -> bytes:
    """Return what the fetched file holds; nothing temporary may be left."""
    temporary = folder / "temporary"
    temporary.mkdir()

    async def run() -> None:
        wanted = DatasetFile(S3Address("b", "k"), "k", len(odd.body), odd.etag if etag is None else etag)
        await Fetcher(temporary).fetch(wanted, folder / "k")

    try:
        asyncio.run(run())
    finally:
        assert list(temporary.iterdir()) == []
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
    assert len(odd.asked) > 2
    assert not (tmp_path / "k").exists()


def test_an_object_that_may_not_be_read_is_not_asked_for_again(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.faults = b"x", ["403"] * 5
    with pytest.raises(FetchFailed, match="s3://b/k: this machine's role may not read it"):
        fetched(odd, tmp_path)
    assert len(odd.asked) == 1


def test_an_object_that_was_archived_meanwhile_is_named_as_such(odd: OddS3, tmp_path: Path) -> None:
    odd.body, odd.faults = b"x", ["archived"] * 5
    with pytest.raises(FetchFailed, match="s3://b/k: it is archived; restore it first"):
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
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.05)
    odd.body = b"x"
    with odd.lock, pytest.raises(FetchFailed, match="could not be read in 1 attempts"):
        fetched(odd, tmp_path)
