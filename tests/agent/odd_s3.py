"""An S3 with one object that misbehaves as a test says."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


ARCHIVED = b"<Error><Code>InvalidObjectState</Code><StorageClass>GLACIER</StorageClass></Error>"


@dataclass
class OddS3:
    """An S3 with one object; `faults` are taken one per request, then it behaves."""

    body: bytes = b""
    faults: list[str] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)
    status_of_ranges: int = 206
    encryption: str = ""
    etag_given: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def etag(self) -> str:
        return self.etag_given or hashlib.md5(self.body, usedforsecurity=False).hexdigest()

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
            if odd.encryption:
                self.send_header("x-amz-server-side-encryption", odd.encryption)
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


@contextmanager
def serving(odd: OddS3) -> Iterator[str]:
    """Serve on loopback; yield the address."""
    server = PatientServer(("127.0.0.1", 0), handler_of(odd))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
