"""The EventBridge PutEvents endpoint that agents of this machine send to: AWS JSON 1.1 over HTTP on loopback."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headrace.local.event_entries import CallRefused
from headrace.ports import Json

MAX_BODY_BYTES = 2 * 1024 * 1024
TARGET = "AWSEvents.PutEvents"
_CREDENTIAL = re.compile(r"^AWS4-HMAC-SHA256 .*Credential=([^/,\s]+)/")
_BAD_REQUEST, _OK, _BROKEN = 400, 200, 500
Accept = Callable[[Sequence[Mapping[str, Json]]], dict[str, Json]]


class EventsEndpoint:
    """Hands the entries of each PutEvents call to `accept` and answers what it returns.

    A call must name the access key of this endpoint, which keeps strangers out by accident only: what makes an event
    believed is the signature inside it (`headrace.domain.events`), as on AWS.
    """

    def __init__(self, accept: Accept, access_key_id: str) -> None:
        self._server = _Server(accept, access_key_id)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="events-endpoint", daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, accept: Accept, access_key_id: str) -> None:
        self.accept = accept
        self.access_key_id = access_key_id
        super().__init__(("127.0.0.1", 0), _Call)


class _Call(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        try:
            status, answer = _OK, self.server.accept(self._entries())
        except CallRefused as refusal:
            status, answer = _BAD_REQUEST, {"__type": refusal.code, "message": str(refusal)}
        except Exception as error:
            status, answer = _BROKEN, {"__type": "InternalException", "message": type(error).__name__}
        self._answer(status, answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Keep quiet: what arrives is recorded where it is handled."""

    def _entries(self) -> Any:
        body = self._body()
        credential = _CREDENTIAL.match(self.headers.get("Authorization", ""))
        if credential is None or credential[1] != self.server.access_key_id:
            raise CallRefused("UnrecognizedClientException", "The security token included in the request is invalid.")
        if self.headers.get("X-Amz-Target") != TARGET:
            raise CallRefused("UnknownOperationException", f"only {TARGET} is served here")
        try:
            return json.loads(body)["Entries"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CallRefused("SerializationException", "the body is not a JSON object with Entries") from None

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            # The body stays unread, so the connection cannot be used again.
            self.close_connection = True
            raise CallRefused("RequestEntityTooLarge", f"a body has a Content-Length of at most {MAX_BODY_BYTES}")
        return self.rfile.read(int(length))

    def _answer(self, status: int, answer: Mapping[str, Json]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
