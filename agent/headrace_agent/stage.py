"""Fills this node's volume from S3: every file of its share, verified, resumable, or a reason why not."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import obstore

from headrace_agent.config import NodeConfig, StageTask
from headrace_agent.configure import seal
from headrace_agent.dataset import DatasetFile, parse_part
from headrace_agent.durability import sync_file_system
from headrace_agent.fetch import Fetcher, FetchFailed
from headrace_agent.fields import ConfigError
from headrace_agent.mounts import is_mounted
from headrace_agent.node import Node
from headrace_agent.runner import ActionFailed
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.safe_paths import SafeRoot, UnsafePath
from headrace_agent.spool import Outcome
from headrace_agent.stage_state import StageState
from headrace_agent.stage_tally import StageTally
from headrace_agent.text import first_line, short
from headrace_agent.work import Work

LOG = logging.getLogger(__name__)
STREAMS = 16
RECORD_EVERY_FILES = 256
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
        return asyncio.run(_Staging(work, task).run())
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
        self.finished: list[DatasetFile] = []

    async def run(self) -> Outcome | None:
        """Run to the end, or until told to stop."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        progress = asyncio.create_task(self._report_progress())
        try:
            copying = asyncio.create_task(self._copy_all())
            await self._until_done_or_stopped(copying)
            self._record()
            shutil.rmtree(self.temporary, ignore_errors=True)
            return None if copying.cancelled() else self._outcome(copying)
        finally:
            progress.cancel()
            self.state.close()

    async def _until_done_or_stopped(self, copying: asyncio.Task[None]) -> None:
        while not copying.done() and not self.work.stop.is_set():
            await asyncio.wait([copying], timeout=0.2)
        if not copying.done():
            copying.cancel()
            await asyncio.wait([copying])

    def _outcome(self, copying: asyncio.Task[None]) -> Outcome:
        self.work.say("Dataset Progress", self.tally.progress())
        copying.result()
        if self.tally.failures:
            return self.tally.failure()
        files, total_bytes, digest = self.state.summary()
        if (files, total_bytes) != (self.task.files, self.task.bytes):
            raise ConfigError(
                f"config.json announces {self.task.files} files of {self.task.bytes} bytes, and the parts it names "
                f"hold {files} files of {total_bytes} bytes"
            )
        return _sealed(self.work, files, total_bytes, digest)

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(max(self.task.progress_seconds, 0.1))
            self.work.say("Dataset Progress", self.tally.progress())

    async def _copy_all(self) -> None:
        fetcher = Fetcher(self.temporary, STREAMS)
        files = self._assigned()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(STREAMS):
                    group.create_task(self._copy_some(files, fetcher))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _assigned(self) -> Iterator[DatasetFile]:
        node = self.work.node
        store = open_bucket(node.run_bucket)
        for part in self.task.parts:
            key = part if part.startswith(node.prefix) else f"{node.prefix}{part}"
            yield from parse_part(bytes(obstore.get(store, key).bytes()), key)

    async def _copy_some(self, files: Iterator[DatasetFile], fetcher: Fetcher) -> None:
        for wanted in files:
            if self.tally.gave_up:
                return
            await self._copy_one(wanted, fetcher)

    async def _copy_one(self, wanted: DatasetFile, fetcher: Fetcher) -> None:
        try:
            target = self._place(wanted.path)
            if not self.state.is_staged(wanted, target):
                await fetcher.fetch(wanted, target)
        except (FetchFailed, UnsafePath) as error:
            self.tally.failures[wanted.path] = str(error)
            return
        self.tally.add(wanted.bytes)
        self.finished.append(wanted)
        if len(self.finished) >= RECORD_EVERY_FILES:
            self._record()

    def _place(self, path: str) -> Path:
        if path.split("/", 1)[0] == TEMPORARY_FOLDER:
            raise UnsafePath(f"the path {path!r} begins with a name that staging keeps for itself")
        return self.root.place(path)

    def _record(self) -> None:
        """Remember what is finished; on a real disk only after it is durable, since a reboot may follow."""
        if not self.work.node.process_node:
            sync_file_system(self.root.root)
        self.state.record(self.finished)
        self.finished.clear()
