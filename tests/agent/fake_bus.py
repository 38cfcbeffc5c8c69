"""An EventBridge endpoint on this machine that remembers what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_SECONDS = 40.0


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

    @property
    def kinds(self) -> list[str]:
        """Detail-types in the order in which they came."""
        return [kind for kind, _ in self.details]

    def bodies(self, detail_type: str) -> list[dict[str, Any]]:
        return [detail["body"] for kind, detail in self.details if kind == detail_type]

    def await_event(self, *detail_types: str) -> dict[str, Any]:
        """Return the body of the first event of one of the types, waiting for it."""
        with self.changed:
            found = self.changed.wait_for(lambda: [d for d in self.details if d[0] in detail_types], WAIT_SECONDS)
            kinds = self.kinds
        assert found, f"none of {detail_types} came; there came {kinds}"
        body: dict[str, Any] = found[0][1]["body"]
        return body


@contextmanager
def running_bus() -> Iterator[FakeBus]:
    bus = FakeBus()

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
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield bus
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
