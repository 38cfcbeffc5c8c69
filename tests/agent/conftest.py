"""Fixtures for the agent's tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from tests.agent.fake_bus import FakeBus, running_bus
from tests.agent.surroundings import DATASET_BUCKET, RESULTS_BUCKET, RUN_BUCKET, S3, SECRET, AgentNode, call


@pytest.fixture
def bus() -> Iterator[FakeBus]:
    with running_bus() as fake:
        yield fake


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> S3:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_url)
    call(f"{s3_url}/moto-api/reset", "POST")
    for bucket in (RUN_BUCKET, DATASET_BUCKET, RESULTS_BUCKET):
        call(f"{s3_url}/{bucket}", "PUT")
    return S3(s3_url)


@pytest.fixture
def node(tmp_path: Path, s3: S3, bus: FakeBus) -> Iterator[AgentNode]:
    one = AgentNode(tmp_path / "node", s3, bus)
    yield one
    one.kill()
