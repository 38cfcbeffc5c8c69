"""A run's surroundings for the agent, all on this machine: an S3 and nodes with a real daemon."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import obstore

from headrace_agent import commands
from headrace_agent.s3 import open_bucket
from tests.agent.fake_bus import WAIT_SECONDS, FakeBus

RUN_ID = "run-1"
NODE_ID = "node-a"
RUN_BUCKET = "run-bucket"
DATASET_BUCKET = "datasets"
RESULTS_BUCKET = "experiments"
PREFIX = f"runs/{RUN_ID}/"
KEY_TEXT = "5a" * 32
SECRET = "secret-canary"


def await_true(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait for a condition of another process, with a deadline."""
    end = time.monotonic() + seconds
    poll = threading.Event()
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        poll.wait(0.02)


def call(url: str, method: str) -> None:
    """Send a request without a body to the S3 of this machine."""
    request = urllib.request.Request(url, method=method)  # noqa: S310 - loopback only
    urllib.request.urlopen(request).close()  # noqa: S310 - loopback only


@dataclass(frozen=True)
class S3:
    """One S3 endpoint."""

    url: str

    def put(self, bucket: str, key: str, body: bytes | str) -> str:
        """Write an object. Return its ETag, without quotes."""
        data = body.encode() if isinstance(body, str) else body
        return (obstore.put(open_bucket(bucket), key, data)["e_tag"] or "").strip('"')

    def put_exactly(self, bucket: str, key: str, body: bytes) -> None:
        """Write an object under a key that obstore would change, such as one that ends in a slash."""
        request = urllib.request.Request(f"{self.url}/{bucket}/{key}", data=body, method="PUT")  # noqa: S310 - loopback
        urllib.request.urlopen(request).close()  # noqa: S310 - loopback only

    def get(self, bucket: str, key: str) -> bytes:
        return bytes(obstore.get(open_bucket(bucket), key).bytes())

    def json(self, bucket: str, key: str) -> Any:
        return json.loads(self.get(bucket, key))

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        return sorted(one["path"] for batch in obstore.list(open_bucket(bucket), prefix or None) for one in batch)


def train_part(**changes: Any) -> dict[str, Any]:
    """Return the train part of a configuration, for one node."""
    return {
        "command": ["true"],
        "variables": {},
        "code": None,
        "requirements": None,
        "node_rank": 0,
        "node_count": 1,
        "rendezvous_address": "127.0.0.1",
        "accelerators": 1,
        "data_inputs": ["data"],
        "direct_sources": [],
        "results_bucket": RESULTS_BUCKET,
        "results_prefix": "out/",
        "stop_grace_seconds": 1.0,
        "results_grace_seconds": 20.0,
        "log_bytes_max": 100_000,
    } | changes


def volume(volume_id: str = "v0", **changes: Any) -> dict[str, Any]:
    """Return a volume of a configuration."""
    return {
        "volume_id": volume_id,
        "kind": "dataset",
        "array_name": f"{RUN_ID}-{volume_id}",
        "array_uuid": "11111111-2222-5333-8444-555555555555",
        "filesystem_uuid": "aaaaaaaa-bbbb-5ccc-8ddd-eeeeeeeeeeee",
        "stripe_unit_bytes": 131072,
        "members": 2,
        "hydrated_here": True,
        "raid_level": 0,
        "slices": [],
    } | changes


def left_on(volume_id: str, rank: int = 0, **changes: Any) -> dict[str, Any]:
    """Return what a compute node left, as a storage node is told."""
    return {
        "node_id": f"node-c{rank}",
        "attempt": 1,
        "node_rank": rank,
        "volume": volume(volume_id, kind="scratch", hydrated_here=False),
        "subsystem_nqn": f"nqn.2026-01.io.headrace:run-1:private-{rank}",
        "results_bucket": RESULTS_BUCKET,
        "results_prefix": f"out/{rank}/",
    } | changes


def config(**changes: Any) -> dict[str, Any]:
    """Return a whole configuration of a node that holds its own data set volume."""
    return {
        "version": 1,
        "run_id": RUN_ID,
        "attempt": 1,
        "node_id": NODE_ID,
        "role": "compute",
        "host_nqn": "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-5cde-8f01-23456789abcd",
        "address": "10.0.1.5",
        "fabric": "tcp",
        "soft_roce": True,
        "heartbeat_seconds": 0.2,
        "volumes": [volume()],
        "slices": [],
        "exports": [],
        "copies": [],
        "imports": [],
        "stage": None,
        "train": None,
    } | changes


def stage_part(s3: S3, files: Mapping[str, bytes], **changes: Any) -> dict[str, Any]:
    """Put the files into the data set's bucket and a part that lists them into the run's. Return the stage part."""
    listed = [
        {"source": f"s3://{DATASET_BUCKET}/in/{path}", "path": path, "bytes": len(body), "etag": etag}
        for path, body in files.items()
        for etag in [s3.put(DATASET_BUCKET, f"in/{path}", body)]
    ]
    s3.put(RUN_BUCKET, f"{PREFIX}stage/part-00000.json", json.dumps({"files": listed}))
    total = sum(len(body) for body in files.values())
    parts = ["stage/part-00000.json"]
    return {"parts": parts, "files": len(files), "bytes": total, "progress_seconds": 0.2} | changes


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the digest that staging reports for files written in one part each."""
    md5s = {path: hashlib.md5(body, usedforsecurity=False).hexdigest() for path, body in files.items()}
    lines = sorted(f"{path}\t{len(body)}\t{md5s[path]}" for path, body in files.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass
class AgentNode:
    """One process node: its folder, its environment and its daemon."""

    folder: Path
    s3: S3
    bus: FakeBus
    deadline_at: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(hours=1))
    idle_lease_seconds: float = 60.0
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HEADRACE_RUN": RUN_ID,
            "HEADRACE_NODE": NODE_ID,
            "HEADRACE_NODE_FILE": str(self.folder / "node.json"),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": self.s3.url,
            "AWS_ENDPOINT_URL_EVENTBRIDGE": self.bus.url,
        }

    def write_node_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        described = {
            "run_id": RUN_ID,
            "node_id": NODE_ID,
            "role": "compute",
            "attempt": 1,
            "run_bucket": RUN_BUCKET,
            "event_bus": "headrace",
            "process_node": True,
            "deadline_at": self.deadline_at.isoformat(),
            "idle_lease_seconds": self.idle_lease_seconds,
            "folder": str(self.folder),
        }
        (self.folder / "node.json").write_text(json.dumps(described))

    def give_identity(self) -> None:
        described = {"run_id": RUN_ID, "node_id": NODE_ID, "attempt": 1, "hmac_key": KEY_TEXT}
        self.s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/identity.json", json.dumps(described))

    def give_config(self, given: dict[str, Any]) -> None:
        self.s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/config.json", json.dumps(given))

    def start(self) -> None:
        """Start the daemon, with an identity to find."""
        self.write_node_file()
        self.give_identity()
        self.start_without_identity()

    def start_without_identity(self) -> None:
        """Start the daemon in a folder that has its node file."""
        with (self.folder / "agent.out").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace_agent", "serve"], env=self.environment, stdout=output, stderr=output
            )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of the agent, as a document does."""
        references = {"SSM_RunId": RUN_ID, "SSM_ConfigReference": f"s3://{RUN_BUCKET}/{PREFIX}"}
        return subprocess.run(
            [sys.executable, "-m", "headrace_agent", *arguments],
            env=self.environment | references,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    def hand_in(self, kind: str, given: dict[str, Any], *, is_configured: bool = False) -> None:
        """Configure the node if it is not, and hand the task in, as the documents do one after the other.

        Both in this process, since a process for each takes longer than what it does.
        """
        self.give_config(given)
        with patch.dict(os.environ, self.environment), redirect_stdout(io.StringIO()):
            for command in (kind,) if is_configured else ("configure", kind):
                assert commands.main([command], self.environment) == 0

    def terminate(self) -> int:
        """Ask the daemon to leave. Return its exit code."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS)

    def kill(self) -> None:
        """End the daemon at once, if it still lives."""
        if self.process:
            self.process.kill()
            self.process.wait(WAIT_SECONDS)

    def processes(self) -> list[int]:
        """Return the ids of all processes that carry this node's marker, dead ones left out.

        Nodes of other test runs on the machine have the same run and node ids, and another folder.
        """
        found = []
        for entry in Path("/proc").iterdir():
            try:
                environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if f"HEADRACE_RUN={RUN_ID}".encode() in environment and bytes(self.folder) in environment:
                found.append(int(entry.name))
        return found

    def output(self) -> str:
        return (self.folder / "agent.out").read_text(errors="replace")


def is_alive(pid: int) -> bool:
    """Tell whether the process is there and no zombie."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs the code with the interpreter of this test."""
    return [sys.executable, "-c", code, *arguments]
