"""Kills the agent at failpoints of copy and results, starts it again, and counts what is wrong or lost then."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from moto.server import ThreadedMotoServer

from tests.agent.fake_bus import FakeBus, running_bus
from tests.agent.surroundings import (
    DATASET_BUCKET,
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    AgentNode,
    await_true,
    call,
    config,
    python,
    stage_part,
    train_part,
)
from tests.chaos.failpoints import FAILPOINTS, Failpoint

CHECKOUT = Path(__file__).parents[2]
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
TRAINER = """
import os, pathlib, random, time
results = pathlib.Path(os.environ["HEADRACE_RESULTS"])
chance = random.Random(os.environ["HEADRACE_RUN"])
for version in (1, 2):
    for number in range(24 if version == 1 else 6):
        size = 11_000_000 if number == 5 else chance.randrange(10_000)
        (results / f"{number:02d}.bin").write_bytes(chance.randbytes(size))
        if number % 6 == 5:
            time.sleep(0.25)
"""


class Ending(NamedTuple):
    """What came of one kill: files whose bytes are not those claimed, and files that were claimed and are not there."""

    name: str
    was_hit: bool
    wrong: tuple[str, ...]
    lost: tuple[str, ...]


class FailingNode(AgentNode):
    """A node whose daemon kills itself at a failpoint, until none is set."""

    point: Failpoint | None = None
    at_call = 1

    @property
    def hit(self) -> str:
        """Return the name of the failpoint that was hit, or nothing."""
        path = self.folder / "hit"
        return path.read_text() if path.exists() else ""

    def start_without_identity(self) -> None:
        """Start the daemon."""
        name = self.point.name if self.point else ""
        argv = [sys.executable, "-m", "tests.chaos.failing_agent", str(self.at_call), name]
        environment = {**self.environment, "HEADRACE_TEST_HIT_FILE": str(self.folder / "hit")}
        with (self.folder / "agent.out").open("ab") as output:
            self.process = subprocess.Popen(argv, env=environment, stdout=output, stderr=output, cwd=CHECKOUT)

    def died(self) -> bool:
        """Tell whether the daemon is gone."""
        return self.process is not None and self.process.poll() is not None


@contextmanager
def surroundings() -> Iterator[S3]:
    """Run an S3 of this process; the environment names it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with patch.dict(os.environ, KEYS, AWS_ENDPOINT_URL_S3=f"http://{host}:{port}"):
            yield S3(f"http://{host}:{port}")
    finally:
        server.stop()


def kill_at(point: Failpoint, at_call: int, s3: S3, folder: Path) -> Ending:
    """Run one task on one node, whose agent dies at the failpoint and is started again. Return what was found."""
    call(f"{s3.url}/moto-api/reset", "POST")
    for bucket in (RUN_BUCKET, DATASET_BUCKET, RESULTS_BUCKET):
        call(f"{s3.url}/{bucket}", "PUT")
    with running_bus() as bus:
        node = FailingNode(folder / "node", s3, bus)
        node.point, node.at_call = point, at_call
        try:
            check = _stage if point.task == "stage" else _train
            wrong, lost = check(node, bus)
        finally:
            node.kill()
    return Ending(point.name, node.hit == point.name, tuple(wrong), tuple(lost))


def _run(node: FailingNode, bus: FakeBus, given: dict[str, object], *outcomes: str) -> tuple[str, dict[str, bytes]]:
    """Run the task up to its outcome, starting the agent again when it died.

    Return which outcome came, and the results that were claimed to be saved when the agent died, with their bytes.
    """
    kind = "stage" if given["stage"] else "train"
    node.start()
    node.hand_in(kind, config(**given))
    await_true(lambda: node.died() or any(one in bus.kinds for one in outcomes), "a death or an outcome")
    claimed = _claimed(node)
    if node.died():
        node.point = None
        node.start()
    bus.await_event(*outcomes)
    return next(one for one in bus.kinds if one in outcomes), claimed


def _stage(node: FailingNode, bus: FakeBus) -> tuple[list[str], list[str]]:
    chance = random.Random(1)  # noqa: S311 - bytes of a test
    files = {f"{number // 10}/{number:03d}.bin": chance.randbytes(chance.randrange(5_000)) for number in range(40)}
    files |= {f"large-{number}.bin": chance.randbytes(330_000) for number in range(2)}
    part = stage_part(node.s3, files, index="staging/index.jsonl")
    outcome, _ = _run(node, bus, {"stage": part, "train": None}, "Dataset Staged", "Dataset Failed")
    root = node.folder / "volumes/v0"
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    index = [json.loads(line) for line in node.s3.get(RUN_BUCKET, f"{PREFIX}staging/index.jsonl").splitlines()]
    wrong = [path for path, body in found.items() if files.get(path) != body]
    if outcome != "Dataset Staged" or [one["path"] for one in index] != sorted(files):
        wrong.append(f"{outcome}, {len(index)} files in the index")
    return wrong, sorted(set(files) - set(found))


def _train(node: FailingNode, bus: FakeBus) -> tuple[list[str], list[str]]:
    job = train_part(command=python(TRAINER))
    _, claimed = _run(node, bus, {"stage": None, "train": job, "volumes": []}, "Job Done", "Job Failed")
    listed = _listed(node)
    on_disk = {path.name: path.read_bytes() for path in (node.folder / "results").iterdir()}
    saved = {key.removeprefix("out/"): node.s3.get(RESULTS_BUCKET, key) for key in node.s3.keys(RESULTS_BUCKET)}
    wrong = [name for name, sha256 in listed.items() if hashlib.sha256(saved.get(name, b"")).hexdigest() != sha256]
    wrong += [name for name, body in claimed.items() if not body]
    lost = sorted((set(claimed) | set(on_disk)) - set(listed)) + [name for name in listed if name not in saved]
    return wrong + [name for name in on_disk if name in saved and saved[name] != on_disk[name]], lost


def _claimed(node: FailingNode) -> dict[str, bytes]:
    """Return what the journal says is saved, each with its object's bytes, or nothing when they are not those."""
    claimed = {}
    for journal in (node.folder / "state").glob("results-*.sqlite3"):
        with closing(sqlite3.connect(journal)) as database:
            rows = database.execute("SELECT path, key, sha256 FROM saved").fetchall()
        keys = set(node.s3.keys(RESULTS_BUCKET))
        for path, key, sha256 in rows:
            body = node.s3.get(RESULTS_BUCKET, key) if key in keys else b""
            claimed[path] = body if hashlib.sha256(body).hexdigest() == sha256 else b""
    return claimed


def _listed(node: FailingNode) -> dict[str, str]:
    manifest = node.s3.json(RUN_BUCKET, f"{PREFIX}results/node-a/manifest.json")
    files = [file for part in manifest["parts"] for file in node.s3.json(RUN_BUCKET, PREFIX + part)["files"]]
    return {file["path"]: file["sha256"] for file in files}


def strike(number: int, seed: int) -> Ending:
    """Make one kill, in a process of its own; points come in turn, the call at which it strikes by the seed."""
    point = FAILPOINTS[number % len(FAILPOINTS)]
    at_call = random.Random(f"{seed}-{number}").randint(1, point.calls)  # noqa: S311 - a seed is the point
    folder = Path(tempfile.mkdtemp(prefix="headrace-kills-"))
    with surroundings() as s3:
        ending = kill_at(point, at_call, s3, folder)
    if not ending.wrong and not ending.lost:
        shutil.rmtree(folder)
    return ending


def table(endings: list[Ending]) -> Iterator[str]:
    """Yield a line per failpoint."""
    by_name: Mapping[str, list[Ending]] = defaultdict(list)
    for one in endings:
        by_name[one.name].append(one)
    yield f"{'failpoint':<48} runs hits wrong lost"
    for name, found in by_name.items():
        wrong, lost = (sum(len(getattr(one, field)) for one in found) for field in ("wrong", "lost"))
        yield f"{name:<48} {len(found):>4} {sum(one.was_hit for one in found):>4} {wrong:>5} {lost:>4}"


def main() -> int:
    """Make the kills; return 1 when any file was wrong or lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.agent_kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.at_once, max_tasks_per_child=1) as pool:
        endings = list(pool.map(strike, range(given.runs), [given.seed] * given.runs))
    hits, wrong, lost = (
        sum(map(bool, (getattr(one, field) for one in endings))) for field in ("was_hit", "wrong", "lost")
    )
    bad = [one for one in endings if one.wrong or one.lost]
    lines = [*table(endings), *map(str, bad)]
    summary = f"{given.runs} runs, {hits} kills, {wrong} with wrong bytes, {lost} with lost files (seed {given.seed})"
    sys.stdout.write("\n".join([*lines, summary]) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
