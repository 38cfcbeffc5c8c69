"""A checkpoint counts when it is complete and saved; the next attempt finds the newest such one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from headrace_agent.checkpoints import bring_back, newest_saved
from headrace_agent.fields import ConfigError
from headrace_agent.job_results import checkpoint_key
from headrace_agent.s3 import open_bucket
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    AgentNode,
    await_true,
    config,
    python,
    train_part,
)
from tests.agent.works import results_of, work_for

KEY = checkpoint_key(PREFIX, 0)


class Attempt:
    """One attempt of a job on a machine of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "results"
        self.root.mkdir(parents=True)
        work, _ = work_for(folder, "train", train=train_part())
        self.results = results_of(work, self.root)

    def write(self, path: str, body: bytes, second: int) -> None:
        target = self.root / "checkpoints" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        os.utime(target, (1_000_000 + second, 1_000_000 + second))

    def newest(self) -> list[str]:
        return [one.name for one in newest_saved(self.root, self.results._journal)]


@pytest.fixture
def attempt(tmp_path: Path, s3: S3) -> Attempt:
    assert s3.keys(RESULTS_BUCKET) == []
    return Attempt(tmp_path / "first")


def resumed(folder: Path) -> Path | None:
    return bring_back(open_bucket(RUN_BUCKET), KEY, folder / "resume")


def test_without_a_former_attempt_there_is_nothing_to_go_on_from(attempt: Attempt, tmp_path: Path) -> None:
    attempt.results.finish(20.0)
    assert resumed(tmp_path) is None


def test_the_newest_file_is_brought_back_with_its_bytes(attempt: Attempt, tmp_path: Path) -> None:
    attempt.write("step-1.pt", b"one", 1)
    attempt.write("step-3.pt", b"three", 3)
    attempt.write("step-2.pt", b"two", 2)
    attempt.results.finish(20.0)
    path = resumed(tmp_path)
    assert path == tmp_path / "resume/checkpoints/step-3.pt"
    assert path.read_bytes() == b"three"


def test_a_folder_counts_when_its_marker_is_saved_and_nothing_in_it_is_newer(attempt: Attempt, tmp_path: Path) -> None:
    for step, names in (("step-1", ("0.distcp", ".metadata")), ("step-2", ("0.distcp",))):
        for name in names:
            attempt.write(f"{step}/{name}", f"{step}{name}".encode(), 5)
    attempt.results.finish(20.0)
    assert attempt.newest() == ["step-1"]
    path = resumed(tmp_path)
    assert path == tmp_path / "resume/checkpoints/step-1"
    assert (path / "0.distcp").read_bytes() == b"step-10.distcp"
    attempt.write("step-1/1.distcp", b"not saved yet", 6)
    assert attempt.newest() == []


def test_a_checkpoint_that_was_pruned_on_disk_is_not_offered(attempt: Attempt) -> None:
    attempt.write("step-1.pt", b"one", 1)
    attempt.write("step-2.pt", b"two", 2)
    attempt.results.finish(20.0)
    (attempt.root / "checkpoints/step-2.pt").unlink()
    assert attempt.newest() == ["step-1.pt"]


def test_when_the_newest_is_not_whole_in_s3_the_one_before_it_is_taken(
    attempt: Attempt, tmp_path: Path, s3: S3
) -> None:
    for step in (1, 2, 3):
        attempt.write(f"step-{step}.pt", str(step).encode(), step)
    attempt.results.finish(20.0)
    s3.put(RESULTS_BUCKET, "out/checkpoints/step-3.pt", b"X")
    shutil.rmtree(tmp_path / "first")
    path = resumed(tmp_path)
    assert path
    assert path.read_bytes() == b"2"
    assert not (path.parent / "step-3.pt").exists()


def test_a_published_path_that_would_leave_the_folder_is_refused(tmp_path: Path, s3: S3) -> None:
    file = {"path": "../escaped", "key": "out/a", "bytes": 1, "sha256": "0"}
    published = {"bucket": RESULTS_BUCKET, "checkpoints": [{"name": "a", "files": [file]}]}
    s3.put(RUN_BUCKET, KEY, json.dumps(published))
    with pytest.raises(ConfigError, match="absolute or has an empty"):
        resumed(tmp_path)


def test_the_next_attempt_is_told_where_the_checkpoint_is(tmp_path: Path, s3: S3, bus: FakeBus) -> None:
    writes = (
        "import os, pathlib; folder = pathlib.Path(os.environ['HEADRACE_RESULTS']) / 'checkpoints'; "
        "folder.mkdir(); (folder / '7.pt').write_text('seven'); assert 'HEADRACE_RESUME' not in os.environ"
    )
    reads = (
        "import os, pathlib; found = pathlib.Path(os.environ['HEADRACE_RESUME']).read_text(); "
        "(pathlib.Path(os.environ['HEADRACE_RESULTS']) / 'resumed').write_text(found)"
    )
    for number, code in enumerate((writes, reads)):
        node = AgentNode(tmp_path / str(number), s3, bus)
        try:
            node.start()
            node.hand_in("train", config(train=train_part(command=python(code))))
            await_true(lambda: bus.kinds.count("Job Done") > number, "the end of the job")  # noqa: B023 - called now
        finally:
            node.kill()
    assert s3.get(RESULTS_BUCKET, "out/resumed") == b"seven"
