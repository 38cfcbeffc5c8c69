"""A run's surroundings for the agent: a real S3, an event bus and node folders, all on this machine."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import pytest
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from headrace_agent.s3 import open_bucket

RUN_ID = "run-1"
NODE_ID = "node-a"
RUN_BUCKET = "run-bucket"
KEY = "5a" * 32


@dataclass
class FakeBus:
    """An EventBridge endpoint that remembers; `script` holds answers to give first: error codes, or a status."""

    url: str = ""
    details: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    script: list[int | list[str | None]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, headers: dict[str, str], request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.changed:
            self.headers.append(headers)
            self.requests.append(request)
            answer = self.script.pop(0) if self.script else [None] * len(request["Entries"])
            if isinstance(answer, int):
                return answer, {"__type": "InternalException"}
            for entry, error in zip(request["Entries"], answer, strict=True):
                if error is None:
                    self.details.append((entry["DetailType"], json.loads(entry["Detail"])))
            self.changed.notify_all()
        results = [{"ErrorCode": error} if error else {"EventId": "e"} for error in answer]
        return 200, {"FailedEntryCount": sum(map(bool, answer)), "Entries": results}

    def of_type(self, detail_type: str) -> list[dict[str, Any]]:
        return [detail for kind, detail in self.details if kind == detail_type]

    def await_event(self, *detail_types: str, seconds: float = 30) -> dict[str, Any]:
        """Return the body of the first event of one of the types, waiting for it."""
        with self.changed:
            found = self.changed.wait_for(lambda: [d for d in self.details if d[0] in detail_types], seconds)
        assert found, f"no {detail_types} among {[kind for kind, _ in self.details]}"
        body: dict[str, Any] = found[0][1]["body"]
        return body


def serve_bus(bus: FakeBus) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = bus.take(dict(self.headers.items()), request)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    bus.url = f"http://127.0.0.1:{server.server_address[1]}"
    return server


@pytest.fixture
def bus() -> Iterator[FakeBus]:
    fake = FakeBus()
    server = serve_bus(fake)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield fake
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@dataclass(frozen=True)
class S3:
    """One S3 endpoint with fresh buckets."""

    url: str

    def make_bucket(self, name: str) -> S3Store:
        import urllib.request

        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310 - loopback
        urllib.request.urlopen(request).close()  # noqa: S310 - loopback
        return open_bucket(name)

    def put(self, bucket: str, key: str, body: bytes | str) -> str:
        """Write an object. Return its ETag, without quotes."""
        data = body.encode() if isinstance(body, str) else body
        return (obstore.put(open_bucket(bucket), key, data)["e_tag"] or "").strip('"')

    def get(self, bucket: str, key: str) -> bytes:
        return bytes(obstore.get(open_bucket(bucket), key).bytes())

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        return sorted(one["path"] for batch in obstore.list(open_bucket(bucket), prefix or None) for one in batch)


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> S3:
    import urllib.request

    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "secret-canary",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": s3_url,
    }.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"{s3_url}/moto-api/reset", method="POST")).close()  # noqa: S310
    found = S3(s3_url)
    for bucket in (RUN_BUCKET, "datasets", "experiments"):
        found.make_bucket(bucket)
    return found
