"""A spot machine that the cloud takes back is left in time, with what was saved last saved first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace_agent.daemon import Daemon
from headrace_agent.interruption import Interruption
from tests.agent.works import process_node

NOTICE = b'{"action": "terminate", "time": "2026-12-01T08:22:00Z"}'


@dataclass
class Metadata:
    """A machine's metadata; without a notice it answers 404, as on a machine that is no spot machine."""

    url: str = ""
    notice: bytes | None = None
    status: int = 200
    tokens: list[str] = field(default_factory=list)


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    one = Metadata()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.answer(one.status, b"token-1" if self.path == "/latest/api/token" else b"")

        def do_GET(self) -> None:
            one.tokens.append(self.headers.get("X-aws-ec2-metadata-token", ""))
            is_asked = self.path == "/latest/meta-data/spot/instance-action" and one.notice is not None
            self.answer(200 if is_asked else 404, one.notice or b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    one.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def looked(metadata: Metadata) -> Interruption:
    interruption = Interruption({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url})
    interruption.look()
    return interruption


def test_a_notice_is_the_reason_to_leave(metadata: Metadata) -> None:
    metadata.notice = NOTICE
    assert looked(metadata).reason == "the cloud takes this machine back at 2026-12-01T08:22:00Z (terminate)"
    assert metadata.tokens == ["token-1"]


@pytest.mark.parametrize(("notice", "status"), [(None, 200), (b"no JSON", 200), (b"{}", 200), (NOTICE, 403)])
def test_no_notice_or_no_sense_is_no_reason(metadata: Metadata, notice: bytes | None, status: int) -> None:
    metadata.notice, metadata.status = notice, status
    assert looked(metadata).reason == ""


def test_a_machine_without_metadata_stays() -> None:
    interruption = Interruption({"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"})
    interruption.look()
    assert interruption.reason == ""


def test_the_agent_leaves_for_that_reason(tmp_path: Path) -> None:
    daemon = Daemon(process_node(tmp_path), {"AWS_ENDPOINT_URL_EVENTBRIDGE": "http://127.0.0.1:9"})
    assert daemon._reason_to_leave() == ""
    daemon._interruption.reason = "the cloud takes this machine back"
    assert daemon._reason_to_leave() == "the cloud takes this machine back"
