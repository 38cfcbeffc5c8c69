"""Large results are uploaded in parts: retried one by one, removed when they cannot become an object."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace_agent import multipart
from headrace_agent.multipart import UploadFailed, upload_in_parts
from headrace_agent.s3 import open_bucket
from headrace_agent.upload import digests_of
from tests.agent.surroundings import RESULTS_BUCKET, S3

PART_BYTES = 5 * 1024 * 1024


def uploaded(path: Path, part_bytes: int = PART_BYTES, bucket: str = RESULTS_BUCKET) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size_bytes = os.fstat(descriptor).st_size
        return upload_in_parts(open_bucket(bucket), "out/a b+é.bin", descriptor, size_bytes, part_bytes)
    finally:
        os.close(descriptor)


def test_the_object_has_the_bytes_and_the_etag_of_its_parts(tmp_path: Path, s3: S3) -> None:
    body = os.urandom(2 * PART_BYTES + 7)
    (tmp_path / "a").write_bytes(body)
    etag = uploaded(tmp_path / "a")
    assert etag == digests_of(tmp_path / "a", PART_BYTES).etag
    assert etag.endswith("-3")
    assert s3.get(RESULTS_BUCKET, "out/a b+é.bin") == body


def test_a_bucket_that_is_not_there_is_named_by_s3s_own_words(tmp_path: Path, s3: S3) -> None:
    assert s3.keys(RESULTS_BUCKET) == []
    (tmp_path / "a").write_bytes(b"x")
    with pytest.raises(UploadFailed, match="S3 answered 404 NoSuchBucket"):
        uploaded(tmp_path / "a", bucket="absent")


@dataclass
class Parts:
    """An S3 of one upload; each request takes the next status of its method's list, then 200."""

    statuses: dict[str, list[int]] = field(default_factory=dict)
    final: bytes = b"<CompleteMultipartUploadResult><ETag>&quot;e-2&quot;</ETag></CompleteMultipartUploadResult>"
    asked: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str) -> tuple[int, bytes]:
        query = path.partition("?")[2].partition("&X-Amz-")[0].removeprefix("X-Amz-")
        with self.lock:
            self.asked.append(method)
            waiting = self.statuses.get(method, [])
            status = waiting.pop(0) if waiting else 200
        begins = method == "POST" and "uploads=" in query + path
        return status, b"<UploadId>u</UploadId>" if begins else self.final if method == "POST" else b""


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    one = Parts()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = one.answer(self.command, self.path)
            self.send_response(status)
            self.send_header("ETag", '"p"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    for name, value in (("ACCESS_KEY_ID", "a"), ("SECRET_ACCESS_KEY", "b"), ("REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setattr(multipart, "FIRST_WAIT_SECONDS", 0.0)
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_part_that_s3_could_not_take_is_sent_again(tmp_path: Path, parts: Parts) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    parts.statuses["PUT"] = [503, 500, 429]
    assert uploaded(tmp_path / "a", part_bytes=3) == "e-2"
    assert sorted(parts.asked) == ["POST"] * 2 + ["PUT"] * 5


@pytest.mark.parametrize(("status", "said"), [(503, "not taken in 5 attempts"), (403, "S3 answered 403")])
def test_an_upload_that_fails_removes_its_parts(tmp_path: Path, parts: Parts, status: int, said: str) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    parts.statuses["PUT"] = [status] * 20
    with pytest.raises(UploadFailed, match=said):
        uploaded(tmp_path / "a", part_bytes=3)
    assert parts.asked[-1] == "DELETE"


def test_a_completion_that_fails_within_a_200_is_a_failure(tmp_path: Path, parts: Parts) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    parts.final = b"<Error><Code>InternalError</Code></Error>"
    with pytest.raises(UploadFailed, match="did not complete the upload"):
        uploaded(tmp_path / "a", part_bytes=3)
    assert parts.asked[-1] == "DELETE"


def test_a_file_that_became_shorter_is_not_uploaded(tmp_path: Path, parts: Parts) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    descriptor = os.open(tmp_path / "a", os.O_RDONLY)
    with pytest.raises(UploadFailed, match="became shorter"):
        upload_in_parts(open_bucket("b"), "k", descriptor, 9, 9)
    os.close(descriptor)
    assert parts.asked[-1] == "DELETE"
