"""Uploads a large file in parts, several at once, each streamed from the disk: no part is ever held in memory."""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import obstore
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from headrace_agent.aws_call import machine_credentials
from headrace_agent.http_connection import tls
from headrace_agent.s3 import KeyedStore, plain_etag

if TYPE_CHECKING:
    from obstore.store import S3Store

PARTS_AT_ONCE = 8
PIECE_BYTES = 256 * 1024
ATTEMPTS = 5
FIRST_WAIT_SECONDS = 0.5
SILENCE_SECONDS = 90.0
SIGNED_SECONDS = 3600
FIRST_ERROR, FIRST_SERVER_ERROR, TOO_MANY = 300, 500, 429
TEXT_BYTES = 64 * 1024
UPLOAD_ID = re.compile(r"<UploadId>([^<]+)</UploadId>")
ERROR_CODE = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
ETAG = re.compile(r"<ETag>(?:&quot;|&#34;|\")?([^<&\"]+)")


class UploadFailed(OSError):
    """S3 did not take the file; uploading it again may help."""


class _Busy(OSError):
    """S3 could not take a part now."""


def upload_in_parts(store: S3Store, key: str, descriptor: int, size_bytes: int, part_bytes: int) -> str:
    """Upload the open file as one object. Return its ETag, or nothing when S3 does not say.

    obstore, which uploads all else, holds each part in memory: 8 at once would be 64 MB of the job's. Requests are
    signed by botocore's S3SigV4QueryAuth (CreateMultipartUpload, UploadPart and CompleteMultipartUpload in the S3 API
    reference). Raises UploadFailed and OSError; the parts are then removed.
    """
    upload = _Upload(store, key)
    upload_id = upload.begin()
    starts = range(0, size_bytes, part_bytes)

    def send(number: int) -> str:
        start = starts[number]
        query = f"partNumber={number + 1}&uploadId={upload_id}"
        return upload.part(query, descriptor, start, min(start + part_bytes, size_bytes))

    try:
        return upload.complete(upload_id, _in_parallel(send, len(starts)))
    except BaseException:
        with suppress(OSError):
            upload.ask("DELETE", f"uploadId={upload_id}")
        raise


def _in_parallel(call: Callable[[int], str], count: int) -> list[str]:
    """Return what the call returns for each number below `count`; the first error ends all and is raised."""
    with ThreadPoolExecutor(min(PARTS_AT_ONCE, count), "part") as pool:
        waiting = [pool.submit(call, number) for number in range(count)]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Upload:
    """The requests of one upload."""

    def __init__(self, store: S3Store, key: str) -> None:
        self._address = urlsplit(obstore.sign(store, "PUT", key, timedelta(minutes=1)))
        self._region = store.config.get("region") or "us-east-1"
        keys = store.keys if isinstance(store, KeyedStore) else machine_credentials().load_credentials()
        if keys is None:
            raise UploadFailed("no AWS keys: none in the environment and none in the machine's metadata")
        self._keys = keys

    def begin(self) -> str:
        """Return the id of a new upload."""
        _, text = self.ask("POST", "uploads=")
        found = UPLOAD_ID.search(text)
        if found is None:
            raise UploadFailed(f"S3 began no upload: {text[:200]!r}")
        return found[1]

    def part(self, query: str, descriptor: int, start: int, end: int) -> str:
        """Send one part, again when S3 is busy. Return its ETag as S3 gave it."""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1))
            try:
                headers, _ = self.ask("PUT", query, _pieces(descriptor, start, end), end - start)
                return headers.get("etag", "")
            except (_Busy, ConnectionError, TimeoutError, http.client.HTTPException) as error:
                failure = error
        raise UploadFailed(f"a part was not taken in {ATTEMPTS} attempts; the last said: {failure}")

    def complete(self, upload_id: str, etags: list[str]) -> str:
        """Make the parts one object; return its ETag. S3 may answer 200 and yet say in the body that it failed."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
            for number, etag in enumerate(etags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        _, text = self.ask("POST", f"uploadId={upload_id}", iter([body]), len(body))
        if "<Error>" in text:
            raise UploadFailed(f"S3 did not complete the upload: {text[:200]!r}")
        found = ETAG.search(text)
        return plain_etag(found[1]) if found else ""

    def ask(
        self, method: str, query: str, body: Iterator[bytes] | None = None, size_bytes: int = 0
    ) -> tuple[dict[str, str], str]:
        """Send one request. Return the answer's headers and text. Raises UploadFailed, _Busy and OSError."""
        url = f"{self._address.scheme}://{self._address.netloc}{self._address.path}?{query}"
        request = AWSRequest(method=method, url=url)
        keys = self._keys.get_frozen_credentials()
        S3SigV4QueryAuth(keys, "s3", self._region, expires=SIGNED_SECONDS).add_auth(request)
        signed = urlsplit(str(request.url))
        connection = self._connect()
        try:
            length = {"Content-Length": str(size_bytes)}
            connection.request(method, f"{signed.path}?{signed.query}", body, length)
            response = connection.getresponse()
            text = response.read(TEXT_BYTES).decode("utf-8", "replace")
        finally:
            connection.close()
        if response.status >= FIRST_SERVER_ERROR or response.status == TOO_MANY:
            raise _Busy(f"S3 answered {response.status}")
        if response.status >= FIRST_ERROR:
            code = ERROR_CODE.search(text)
            raise UploadFailed(f"S3 answered {response.status} {code[1] if code else ''}".rstrip())
        return {name.lower(): value for name, value in response.getheaders()}, text

    def _connect(self) -> http.client.HTTPConnection:
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(self._address.netloc, timeout=SILENCE_SECONDS, context=tls())
        return http.client.HTTPConnection(self._address.netloc, timeout=SILENCE_SECONDS)


def _pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(descriptor, min(PIECE_BYTES, end - start), start)
        if not piece:
            raise UploadFailed("the file became shorter while it was uploaded")
        start += len(piece)
        yield piece
