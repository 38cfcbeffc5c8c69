"""S3 objects as handlers see them: keys as they are, refusals and absences by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TypeVar

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from headrace.aws.objects import S3Objects
from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.ports import ObjectInfo

AnyServer = TypeVar("AnyServer", bound=HTTPServer)


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Objects]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws(), closing(S3Objects(region="us-east-1")) as port:
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="bucket")
        yield port


def test_storage_classes_are_told_apart(objects: S3Objects) -> None:
    client = boto3.client("s3", region_name="us-east-1")
    client.put_object(Bucket="bucket", Key="cold", Body=b"12", StorageClass="GLACIER")
    objects.put("bucket", "warm", b"1")
    listed = objects.page("bucket", "").objects
    assert [(one.key, one.storage_class) for one in listed] == [("cold", "GLACIER"), ("warm", "STANDARD")]
    assert objects.head("bucket", "cold").storage_class == "GLACIER"
    assert objects.head("bucket", "warm") == ObjectInfo("warm", 1, "c4ca4238a0b923820dcc509a6f75849b", "STANDARD")


@given(st.text(st.characters(codec="utf-8", min_codepoint=1), min_size=1, max_size=30))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_key_is_listed_as_it_was_written(objects: S3Objects, name: str) -> None:
    key = f"keys/{name}"
    objects.put("bucket", key, b"1")
    assert [one.key for one in objects.page("bucket", key).objects if one.key == key] == [key]
    objects.delete("bucket", key)


def test_unfinished_uploads_below_a_prefix_are_aborted(objects: S3Objects) -> None:
    client = boto3.client("s3", region_name="us-east-1")
    for key in ("run-1/a", "run-1/b", "run-10/a"):
        begun = client.create_multipart_upload(Bucket="bucket", Key=key)
        client.upload_part(Bucket="bucket", Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"half")
    objects.put("bucket", "run-1/whole", b"1")
    assert objects.abort_uploads("bucket", "run-1/") == 2
    left = client.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert [one["Key"] for one in left] == ["run-10/a"]
    assert objects.get("bucket", "run-1/whole") == b"1"
    assert objects.abort_uploads("bucket", "run-1/") == 0


def test_folder_markers_and_empty_segments_are_shown_raw(objects: S3Objects) -> None:
    for key in ("a/", "a//b", "/lead", "a/../b"):
        objects.put("bucket", key, b"")
    assert [one.key for one in objects.page("bucket", "").objects] == ["/lead", "a/", "a/../b", "a//b"]


def test_a_missing_bucket_says_so(objects: S3Objects) -> None:
    with pytest.raises(ObjectMissing, match="s3://nowhere/x: there is no such bucket"):
        objects.put("nowhere", "x", b"")
    with pytest.raises(ObjectMissing, match="there is no such bucket"):
        objects.page("nowhere", "")


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with the status and code that the server carries."""

    def answer(self) -> None:
        body = f"<Error><Code>{self.server.code}</Code></Error>".encode()  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer()

    def do_PUT(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def do_DELETE(self) -> None:
        self.answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class RefusingServer(HTTPServer):
    status = 403
    code = "AccessDenied"


@contextmanager
def serving(server: AnyServer) -> Iterator[AnyServer]:
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def server() -> Iterator[RefusingServer]:
    with serving(RefusingServer(("127.0.0.1", 0), Refusing)) as made:
        yield made


def objects_at(server: HTTPServer) -> S3Objects:
    url = f"http://127.0.0.1:{server.server_port}"
    return S3Objects(region="us-east-1", endpoint_url=url, access_key_id="a", secret_access_key="b")


def test_403_is_access_denied_whatever_was_asked(server: RefusingServer) -> None:
    with closing(objects_at(server)) as objects:
        for call in (
            lambda: objects.get("bucket", "k"),
            lambda: objects.put("bucket", "k", b"1"),
            lambda: objects.head("bucket", "k"),
            lambda: objects.delete("bucket", "k"),
            lambda: objects.page("bucket", "k"),
        ):
            with pytest.raises(AccessDenied, match=r"s3://bucket/k.*Grant"):
                call()


def test_another_refusal_is_no_absence(server: RefusingServer) -> None:
    server.status, server.code = 409, "OperationAborted"
    with closing(objects_at(server)) as objects, pytest.raises(ClientError, match="OperationAborted"):
        objects.put("bucket", "k", b"1")


LISTING = b"<ListBucketResult><Contents><Key>a+b%25</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>"


class Listing(BaseHTTPRequestHandler):
    """Answers every GET with one listing that says nothing of an encoding."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(LISTING)))
        self.end_headers()
        self.wfile.write(LISTING)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_a_listing_that_was_not_encoded_is_not_decoded() -> None:
    with serving(HTTPServer(("127.0.0.1", 0), Listing)) as server, closing(objects_at(server)) as objects:
        assert [one.key for one in objects.page("bucket", "").objects] == ["a+b%25"]


def test_an_endpoint_is_asked_directly_even_where_a_proxy_is_set(
    server: RefusingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with closing(objects_at(server)) as objects, pytest.raises(AccessDenied):
        objects.get("bucket", json.dumps({}))
