"""What a compute node left on a storage node is saved whole, once, and never by something older."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from headrace_agent import results as results_module
from headrace_agent import upload
from headrace_agent.config import parse_config
from headrace_agent.job_results import JobResults, ResultsPlace, SavedResults, checkpoint_key, journal_path
from headrace_agent.result_files import FileState
from headrace_agent.results_journal import ResultsJournal, SavedFile
from headrace_agent.salvage import run_salvage
from headrace_agent.snapshots import Snapshots
from headrace_agent.spool import Outcome, Task
from headrace_agent.work import Work
from headrace_agent.worker import failure_of
from tests.agent.surroundings import (
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    config,
    left_on,
)
from tests.agent.works import process_node


class Storage:
    """A storage node on a process node, with volumes that compute nodes left, and what it uploads."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node = process_node(folder, "storage")
        folder.mkdir()
        self.uploads: list[str] = []
        self.fails: set[str] = set()

        def noted(store: S3Store, root: Path, file: FileState, key: str, snapshots: Snapshots) -> SavedFile:
            if key in self.fails:
                raise upload.NotSaved("refused")
            self.uploads.append(key)
            return upload.save(store, root, file, key, snapshots)

        monkeypatch.setattr(results_module, "save", noted)

    def write(self, path: str, body: bytes, second: int = 0) -> None:
        """Write a result on a volume, as a job did in that second."""
        target = self.node.volumes / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        os.utime(target, (1_000_000 + second, 1_000_000 + second))

    def work(self, *left: dict[str, Any], grace: float = 20.0) -> Work:
        part = {"left": list(left), "results_grace_seconds": grace}
        read = parse_config(json.dumps(config(role="storage", volumes=[], salvage=part)))
        return Work(self.node, Task("salvage-1", "salvage", read), lambda *_: None)

    def salvage(self, *left: dict[str, Any], grace: float = 20.0) -> dict[str, Any]:
        """Salvage, and return what is said of it."""
        outcome = run_salvage(self.work(*left, grace=grace))
        assert outcome
        assert outcome.detail_type == "Results Salvaged"
        return outcome.body

    def journal(self, left: dict[str, Any]) -> ResultsJournal:
        folder = self.node.volumes / left["volume"]["volume_id"]
        names = (left["node_id"], 1, 0, left["results_bucket"], left["results_prefix"])
        return ResultsJournal(journal_path(ResultsPlace(*names, folder / "results", folder / "state")))


@pytest.fixture
def storage(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> Storage:
    assert s3.keys(RESULTS_BUCKET) == []
    return Storage(tmp_path / "storage", monkeypatch)


def test_what_was_left_is_saved_as_the_compute_nodes_own(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one")
    storage.write("v5/results/deep/b", b"two!")
    assert storage.salvage(left_on("v5")) == {"ranks": [0], "files": 2, "bytes": 7}
    assert s3.get(RESULTS_BUCKET, "out/0/deep/b") == b"two!"
    manifest = s3.json(RUN_BUCKET, f"{PREFIX}results/node-c0/manifest.json")
    assert (manifest["node_id"], manifest["attempt"], manifest["files"]) == ("node-c0", 1, 2)
    assert manifest["parts"] == ["results/node-c0/part-00000.json"]


def test_a_second_salvage_uploads_nothing_and_says_the_same(storage: Storage) -> None:
    storage.write("v5/results/a", b"one")
    first = storage.salvage(left_on("v5"))
    assert storage.salvage(left_on("v5")) == first
    assert storage.uploads == ["out/0/a"]


def test_a_version_older_than_what_was_saved_never_replaces_it(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"new", second=9)
    storage.salvage(left_on("v5"))
    storage.write("v5/results/a", b"old version", second=8)
    assert storage.salvage(left_on("v5")) == {"ranks": [0], "files": 1, "bytes": 3}
    assert s3.get(RESULTS_BUCKET, "out/0/a") == b"new"


def test_a_version_of_the_same_instant_is_newer_if_it_is_longer_and_was_cut_off_if_it_is_shorter(
    storage: Storage, s3: S3
) -> None:
    for body, saved in ((b"whole", b"whole"), (b"", b"whole"), (b"and more", b"and more")):
        storage.write("v5/results/a", body, second=9)
        storage.salvage(left_on("v5"))
        assert s3.get(RESULTS_BUCKET, "out/0/a") == saved


def test_a_newer_version_is_saved_and_what_is_gone_from_the_volume_stays_saved(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one", second=1)
    storage.write("v5/results/b", b"b", second=1)
    storage.salvage(left_on("v5"))
    storage.write("v5/results/a", b"two", second=2)
    (storage.node.volumes / "v5/results/b").unlink()
    assert storage.salvage(left_on("v5")) == {"ranks": [0], "files": 2, "bytes": 4}
    assert s3.get(RESULTS_BUCKET, "out/0/a") == b"two"


def test_while_the_job_runs_an_older_version_counts_as_written_anew(tmp_path: Path) -> None:
    journal = ResultsJournal(tmp_path / "journal.sqlite3")
    journal.record([SavedFile("a", "out/a", 3, 9, "", "")])
    versions = [FileState("a", 3, 9), FileState("a", 3, 8), FileState("a", 2, 9), FileState("a", 4, 9)]
    assert [journal.is_saved(one) for one in versions] == [True, False, False, False]
    assert [journal.is_saved_or_older(one) for one in versions] == [True, True, True, False]
    assert not journal.is_saved_or_older(FileState("b", 0, 0))
    journal.close()


def test_nothing_is_left_where_the_volume_was_never_made_or_no_job_began(storage: Storage, s3: S3) -> None:
    (storage.node.volumes / "v6").mkdir(parents=True)
    assert storage.salvage(left_on("v5"), left_on("v6", 1)) == {"ranks": [0, 1], "files": 0, "bytes": 0}
    assert s3.keys(RUN_BUCKET) == []
    assert list((storage.node.volumes / "v6").iterdir()) == []


@pytest.mark.parametrize("name", ["results", "state"])
def test_a_link_in_place_of_a_folder_never_leads_off_the_volume(storage: Storage, s3: S3, name: str) -> None:
    secret = storage.node.folder / "secrets"
    secret.mkdir()
    (secret / "identity.json").write_text("key")
    storage.write("v5/results/a", b"one")
    shutil.rmtree(storage.node.volumes / "v5" / name, ignore_errors=True)
    (storage.node.volumes / "v5" / name).symlink_to(secret)
    said = storage.salvage(left_on("v5"))
    assert said["ranks"] == []
    assert f"{name} on it is a link" in said["trouble"]
    assert s3.keys(RESULTS_BUCKET) == []
    assert [one.name for one in secret.iterdir()] == ["identity.json"]


def test_what_was_not_saved_in_time_is_named_and_what_was_is_counted_with_its_rank(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("v5/results/a", b"one")
    late = SavedResults(None, 1, 3, "results were not saved within 20 seconds")
    monkeypatch.setattr(JobResults, "finish", lambda *_: late)
    assert storage.salvage(left_on("v5")) == {
        "ranks": [0],
        "files": 1,
        "bytes": 3,
        "trouble": "rank 0: results were not saved within 20 seconds",
    }


def test_a_job_that_ended_whole_keeps_its_manifest_when_only_its_journal_is_left(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one")
    storage.salvage(left_on("v5"))
    shutil.rmtree(storage.node.volumes / "v5/results")
    assert storage.salvage(left_on("v5")) == {"ranks": [0], "files": 1, "bytes": 3}
    assert s3.json(RUN_BUCKET, f"{PREFIX}results/node-c0/manifest.json")["files"] == 1


def test_a_volume_that_cannot_be_read_is_named_and_the_others_are_saved(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one")
    storage.write("v6/results/b", b"two")
    storage.journal(left_on("v5")).close()
    for journal in (storage.node.volumes / "v5/state").iterdir():
        journal.write_bytes(b"no database" * 100)
    body = storage.salvage(left_on("v5"), left_on("v6", 1))
    assert (body["ranks"], body["files"], body["bytes"]) == ([1], 1, 3)
    assert body["trouble"] == "rank 0: nothing more is saved of volume v5: file is not a database"
    assert s3.keys(RESULTS_BUCKET) == ["out/1/b"]


def test_what_is_not_saved_in_time_is_named_with_its_rank_in_a_text_that_fits(storage: Storage) -> None:
    storage.write("v5/results/a", b"one")
    storage.write("v5/results/b", b"two")
    storage.fails = {"out/7/a"}
    body = storage.salvage(left_on("v5", 7), grace=0.1)
    assert (body["ranks"], body["files"]) == ([7], 1)
    assert body["trouble"] == "rank 7: 1 results are not saved: a (refused)"
    many = [left_on("v5", rank, subsystem_nqn="no NQN " * 100) for rank in range(5)]
    trouble = storage.salvage(*many)["trouble"]
    assert len(trouble) <= 1024
    assert all(f"rank {rank}: nothing more is saved of volume v5: config.json: 'no NQN" in trouble for rank in range(5))


def test_snapshots_of_the_lost_node_are_removed_and_are_no_results(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one")
    storage.write("v5/.headrace-snapshots/0123", b"half")
    storage.salvage(left_on("v5"))
    assert not (storage.node.volumes / "v5/.headrace-snapshots/0123").exists()
    assert s3.keys(RESULTS_BUCKET) == ["out/0/a"]


def published(s3: S3, rank: int = 0) -> list[str]:
    described = s3.json(RUN_BUCKET, checkpoint_key(PREFIX, rank))["checkpoints"]
    return [one["name"] for one in described]


def test_the_newest_complete_checkpoint_is_published_for_its_rank(storage: Storage, s3: S3) -> None:
    for number in (1, 2):
        storage.write(f"v5/results/checkpoints/step-{number}/shard", b"s", second=number)
    storage.write("v5/results/checkpoints/step-1/.complete", b"", second=1)
    storage.salvage(left_on("v5", 3))
    assert published(s3, 3) == ["step-1"]


def test_a_checkpoint_that_was_published_and_is_gone_from_the_volume_stays_the_newest(storage: Storage, s3: S3) -> None:
    for number in (1, 2):
        storage.write(f"v5/results/checkpoints/{number}.pt", b"%d" % number, second=number)
    storage.salvage(left_on("v5"))
    assert published(s3) == ["2.pt", "1.pt"]
    (storage.node.volumes / "v5/results/checkpoints/2.pt").unlink()
    storage.write("v5/results/checkpoints/1.pt", b"", second=1)
    storage.salvage(left_on("v5"))
    assert published(s3) == ["2.pt", "1.pt"]


def test_a_published_checkpoint_that_was_written_over_since_is_published_no_more(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/checkpoints/last/shard", b"1", second=1)
    storage.write("v5/results/checkpoints/last/.complete", b"", second=1)
    storage.write("v5/results/checkpoints/old.pt", b"0", second=0)
    storage.salvage(left_on("v5"))
    storage.write("v5/results/checkpoints/last/shard", b"2", second=2)
    (storage.node.volumes / "v5/results/checkpoints/last/.complete").unlink()
    storage.salvage(left_on("v5"))
    assert published(s3) == ["old.pt"]


def test_told_to_stop_it_ends_without_an_outcome_and_is_done_again_later(storage: Storage, s3: S3) -> None:
    storage.write("v5/results/a", b"one")
    work = storage.work(left_on("v5"))
    work.stop.raise_for("the machine is to go")
    assert run_salvage(work) is None
    assert storage.uploads == []
    assert s3.keys(RUN_BUCKET) == []
    assert storage.salvage(left_on("v5"))["files"] == 1


def test_a_process_node_does_nothing_to_devices_and_says_what_it_would_do(storage: Storage) -> None:
    storage.salvage(left_on("v5"))
    told = (storage.node.folder / "not-executed.jsonl").read_text()
    assert [word in told for word in ("mdadm --assemble", "mount -t xfs", "umount")] == [True] * 3
    assert [word in told for word in ("--create", "mkfs", "wipefs")] == [False] * 3


def test_a_salvage_that_failed_itself_says_so_in_the_event_of_a_salvage() -> None:
    body = {"ranks": [], "files": 0, "bytes": 0, "trouble": "why"}
    assert failure_of("salvage", "why") == Outcome("Results Salvaged", body)
    assert failure_of("stage", "why").detail_type == "Dataset Failed"
    assert failure_of("train", "why").detail_type == "Job Failed"
