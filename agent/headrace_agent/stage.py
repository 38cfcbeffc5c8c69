"""Fills this node's volume from S3: every file of its share, verified, resumable, or a reason why not."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import obstore

from headrace_agent.action_failed import ActionFailed
from headrace_agent.config import NodeConfig, StageTask
from headrace_agent.copier import Copier
from headrace_agent.data_index import bundled
from headrace_agent.dataset import DatasetFile, parse_part
from headrace_agent.durability import sync_file_system
from headrace_agent.fields import ConfigError
from headrace_agent.mounts import is_mounted
from headrace_agent.node import Node
from headrace_agent.reach import reach_of
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.safe_paths import SafeRoot, UnsafePath
from headrace_agent.spool import Outcome
from headrace_agent.stage_state import StageState
from headrace_agent.stage_tally import StageTally
from headrace_agent.text import first_line, short
from headrace_agent.work import Work

LOG = logging.getLogger(__name__)
STREAMS = 256
"""At 60 ms per request, each stream of 100 KiB objects brings 1.6 MB/s, whatever the network can do: half as many
were too few there (`python -m bench.staging --only delay` prints how the rates compare)."""

PROCESS_NODE_STREAMS = 32
TICK_SECONDS = 0.2
RECORD_SECONDS = 1.0
"""What is finished in the last second is copied again after a kill."""

TEMPORARY_FOLDER = ".headrace-staging"
NOTHING_DIGEST = hashlib.sha256().hexdigest()


def target_volume(config: NodeConfig) -> str:
    """Return the id of the volume to fill: the one hydrated here, else the first of the data set.

    Raises ConfigError when there is none.
    """
    volumes = sorted((one for one in config.volumes if one.kind == "dataset"), key=lambda one: not one.hydrated_here)
    if not volumes:
        raise ConfigError("config.json names no dataset volume, so there is no place to stage to")
    return volumes[0].volume_id


def run_stage(work: Work) -> Outcome | None:
    """Stage this node's share. Return the outcome to report, or None when told to stop."""
    try:
        task = work.task.config.stage
        if task is None:
            raise ConfigError("config.json has no part 'stage'")
        if summary := _finished_before(work, task):
            return _sealed(work, *summary)
        return _Staging(work, task).run()
    except (ConfigError, UnsafePath, ActionFailed, *S3_ERRORS) as error:
        if isinstance(error, ActionFailed) and work.stop.is_set():
            return None
        return Outcome("Dataset Failed", {"reason": short(first_line(error)), "missing": []})


def _finished_before(work: Work, task: StageTask) -> tuple[int, int, str] | None:
    """Return files, bytes and digest when nothing is to be copied: no volume is filled here, or one that is closed."""
    config, node = work.task.config, work.node
    if not task.files and not config.volumes:
        return 0, 0, NOTHING_DIGEST
    folder = node.volumes / target_volume(config)
    path = _state_file(node, folder)
    if node.process_node or is_mounted(folder) or not path.exists():
        return None
    state = StageState(path, work.task.task_id)
    summary = state.summary()
    state.close()
    return summary if summary[:2] == (task.files, task.bytes) else None


def _state_file(node: Node, folder: Path) -> Path:
    return node.state / f"stage-{folder.name}.sqlite3"


def _sealed(work: Work, files: int, total_bytes: int, digest: str) -> Outcome:
    if work.task.config.role == "storage":
        from headrace_agent.configure import seal  # noqa: PLC0415 - only storage nodes pay for it

        seal(work.node, work.task.config, LOG.info, work.stop.is_set)
    return Outcome("Dataset Staged", {"files": files, "bytes": total_bytes, "digest": digest})


class _Staging:
    def __init__(self, work: Work, task: StageTask) -> None:
        self.work = work
        self.task = task
        folder = work.node.volumes / target_volume(work.task.config)
        if not work.node.process_node and not is_mounted(folder):
            raise ConfigError(f"nothing is mounted on {folder}; run `headrace-agent configure` first")
        self.root = SafeRoot(folder)
        self.temporary = folder / TEMPORARY_FOLDER
        self.state = StageState(_state_file(work.node, folder), work.task.task_id)
        self.tally = StageTally(task)
        streams = PROCESS_NODE_STREAMS if work.node.process_node else STREAMS
        self.copier = Copier(
            self._assigned(),
            self._place,
            self.temporary,
            self.state,
            self.tally,
            streams,
            open_store=reach_of(work.node, work.task.config),
            is_hashed=task.is_hashed,
        )
        self.next_record = time.monotonic() + RECORD_SECONDS
        self.next_report = time.monotonic() + self._report_seconds

    def run(self) -> Outcome | None:
        """Run to the end, or until told to stop."""
        self._clean_up()
        self.temporary.mkdir(exist_ok=True)
        try:
            self._copy()
            return None if self.work.stop.is_set() else self._outcome()
        finally:
            self._clean_up()
            self.state.close()

    def _copy(self) -> None:
        try:
            self.copier.start()
            while not self.copier.is_over(TICK_SECONDS) and not self.work.stop.is_set():
                self._tend()
        finally:
            self.copier.stop()
            self._record()

    def _tend(self) -> None:
        """Record what is finished, and report, each now and then."""
        if time.monotonic() >= self.next_record:
            self.next_record = time.monotonic() + RECORD_SECONDS
            self._record()
        if time.monotonic() >= self.next_report:
            self.next_report = time.monotonic() + self._report_seconds
            self.work.say("Dataset Progress", self.tally.progress())

    def _outcome(self) -> Outcome:
        self.work.say("Dataset Progress", self.tally.progress())
        if self.tally.failures:
            return self.tally.failure()
        files, total_bytes, digest = self.state.summary()
        if (files, total_bytes) != (self.task.files, self.task.bytes):
            raise ConfigError(
                f"config.json announces {self.task.files} files of {self.task.bytes} bytes, and the parts it names "
                f"hold {files} files of {total_bytes} bytes"
            )
        self._write_index()
        self.state.forget_spans()
        self._clean_up()
        return _sealed(self.work, files, total_bytes, digest)

    def _write_index(self) -> None:
        """Write what is staged here, so that no job has to list S3 or walk the volumes to know its data."""
        if self.task.index:
            node = self.work.node
            lines = (line.encode() for line in self.state.index_lines())
            obstore.put(open_bucket(node.run_bucket), node.prefix + self.task.index, bundled(lines), max_concurrency=1)

    @property
    def _report_seconds(self) -> float:
        return max(self.task.progress_seconds, TICK_SECONDS)

    def _assigned(self) -> Iterator[DatasetFile]:
        node = self.work.node
        store = open_bucket(node.run_bucket)
        for part in self.task.parts:
            key = part if part.startswith(node.prefix) else f"{node.prefix}{part}"
            yield from parse_part(bytes(obstore.get(store, key).bytes()), key)

    def _clean_up(self) -> None:
        """Remove what a staging left that did not come to its end, but not large files whose spans are known."""
        known = self.state.parts()
        for path in self.temporary.iterdir() if self.temporary.is_dir() else ():
            if path.name not in known:
                path.unlink()
        with contextlib.suppress(FileNotFoundError, OSError):
            self.temporary.rmdir()

    def _place(self, path: str) -> Path:
        if path.split("/", 1)[0] == TEMPORARY_FOLDER:
            raise UnsafePath(f"the path {path!r} begins with a name that staging keeps for itself")
        return self.root.place(path)

    def _record(self) -> None:
        """Remember what is finished; on a real disk only after it is durable, since a reboot may follow."""
        files, spans = self.copier.take_finished()
        if not files and not spans:
            return
        if not self.work.node.process_node:
            sync_file_system(self.root.root)
        self.state.record(files, spans)
