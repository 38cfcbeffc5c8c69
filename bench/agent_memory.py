"""Measures what the agent takes from a machine while a job runs and its results are saved."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench.weed import BUCKET, KEY, SECRET, Served, environment, weed
from headrace.aws.settings import HEARTBEAT_SECONDS
from tests.agent import surroundings
from tests.agent.fake_bus import running_bus
from tests.agent.surroundings import S3, AgentNode, config, python, train_part

TRAINER = """
import os, pathlib, sys, time
results, files, sparse_gib = pathlib.Path(os.environ["HEADRACE_RESULTS"]), int(sys.argv[1]), float(sys.argv[2])
for number in range(files):
    folder = results / f"{number // 1000:03d}"
    folder.mkdir(exist_ok=True)
    (folder / f"{number:05d}.bin").write_bytes(os.urandom(100 * 1024))
if sparse_gib:
    with (results / "sparse.bin").open("wb") as file:
        file.truncate(int(sparse_gib * 2**30))
end = pathlib.Path(os.environ["HEADRACE_RESULTS"]).parent / "end"
while not end.exists():
    time.sleep(0.5)
"""
LOOK_SECONDS = 0.05
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What one stretch of time took of the machine: the most memory, and the share of one core."""

    resident_bytes: int
    core_share: float
    seconds: float

    def __str__(self) -> str:
        """Return it in words."""
        took = f"{self.core_share:.2%} of a core, {self.seconds:.0f} s"
        return f"at most {self.resident_bytes / 1e6:.1f} MB resident, {took}"


def watch(pid: int, is_over: threading.Event, seconds: float) -> Usage:
    """Look at a process until the event or for that many seconds."""
    began, cpu_before, most = time.monotonic(), _cpu_seconds(pid), 0
    while time.monotonic() - began < seconds and not is_over.wait(LOOK_SECONDS):
        most = max(most, _resident_bytes(pid))
    took = time.monotonic() - began
    return Usage(most, (_cpu_seconds(pid) - cpu_before) / took, took)


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


class BenchNode(AgentNode):
    """A node that knows the keys of the bench's server."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its daemon and of its commands."""
        return {**super().environment, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


def measure(folder: Path, served: Served, files: int, sparse_gib: float, idle_seconds: float) -> None:
    """Run the agent with a job that writes those results, and print what it takes while saving and afterwards."""
    for name in ("RUN_BUCKET", "RESULTS_BUCKET"):
        setattr(surroundings, name, BUCKET)
    os.environ.update(environment(served.endpoint, served.authority))
    with running_bus() as bus:
        node = BenchNode(folder / "node", S3(served.endpoint), bus)
        try:
            _run(node, files, sparse_gib, idle_seconds)
        finally:
            node.kill()


def _run(node: AgentNode, files: int, sparse_gib: float, idle_seconds: float) -> None:
    node.start()
    assert node.process  # noqa: S101 - it was started
    job = train_part(command=python(TRAINER, str(files), str(sparse_gib)), results_bucket=BUCKET, results_prefix="out/")
    node.hand_in("train", config(train=job, volumes=[], heartbeat_seconds=HEARTBEAT_SECONDS))
    node.bus.await_event("Job Started")
    expected, saved = files + (1 if sparse_gib else 0), threading.Event()
    threading.Thread(target=_await_saved, args=(node, expected, saved), daemon=True).start()
    _say(f"{files:,} files of 100 KiB and {sparse_gib:g} GiB sparse, saving: {watch(node.process.pid, saved, 3600)}")
    _say(f"all saved, the job runs on:{'':30} {watch(node.process.pid, threading.Event(), idle_seconds)}")
    (node.folder / "end").touch()
    body = node.bus.await_event("Job Done", "Job Failed")
    if body.get("files") != expected:
        raise RuntimeError(f"not all {expected} results were saved: {body}")


def _await_saved(node: AgentNode, expected: int, saved: threading.Event) -> None:
    pause = threading.Event()
    while not any(body["files"] == expected for body in node.bus.bodies("Results Progress")[-1:]):
        pause.wait(0.2)
    saved.set()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure many small results, then one large."""
    parser = argparse.ArgumentParser(prog="python -m bench.agent_memory", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--sparse-gib", type=float, default=20.0)
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, weed(Path(root) / "s3") as served:
        for number, (files, sparse_gib) in enumerate(((given.files, 0.0), (0, given.sparse_gib))):
            measure(Path(root) / str(number), served, files, sparse_gib, given.idle_seconds)


if __name__ == "__main__":
    main()
