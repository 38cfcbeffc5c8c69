"""Prepares everything that the job's command needs: code, data, packages and its environment."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.checkpoints import bring_back
from headrace_agent.code_folder import CodeUnusable, fetch_code
from headrace_agent.config import NodeConfig, TrainTask
from headrace_agent.data_index import write_index
from headrace_agent.data_tree import DataUnusable, dataset_folders, merge
from headrace_agent.fields import ConfigError
from headrace_agent.job_environment import Places, job_environment
from headrace_agent.job_log import JobLog
from headrace_agent.job_results import checkpoint_key
from headrace_agent.job_user import JobUser, NoJobUser
from headrace_agent.mounts import is_mounted
from headrace_agent.node import Node
from headrace_agent.python_environment import Installer, RequirementsFailed, own_bin
from headrace_agent.reach import OpenBucket, reach_of
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.scratch import base_folder, journal_folder
from headrace_agent.text import first_line
from headrace_agent.work import Work

SETUP_ERRORS = (CodeUnusable, DataUnusable, NoJobUser, RequirementsFailed)


@dataclass(frozen=True)
class JobFolders:
    """Where one job works, on one node."""

    work: Path
    results: Path
    progress: Path
    index: Path
    resume: Path
    notice: Path
    log: Path
    environment: Path
    journal: Path
    """What is known of saved results; the agent's own."""


def folders_of(node: Node, config: NodeConfig) -> JobFolders:
    """Return the job's folders, on the scratch volume if there is one."""
    base = base_folder(node, config)
    return JobFolders(
        work=base / "work",
        results=base / "results",
        progress=base / "progress.jsonl",
        index=base / "index.jsonl",
        resume=base / "resume",
        notice=base / "notice.jsonl",
        log=node.folder / "log" / "train.log",
        environment=base / "venv",
        journal=journal_folder(node, config),
    )


def prepare(
    work: Work, task: TrainTask, folders: JobFolders, log: JobLog, mark: str, user: JobUser | None = None
) -> dict[str, str]:
    """Make the folders ready, the job's user their owner, and return the environment. Raises one of SETUP_ERRORS.

    Results of an earlier attempt stay: they are what a resumed job goes on from.
    """
    for stale in (folders.work, folders.environment):
        shutil.rmtree(stale, ignore_errors=True)
    folders.work.mkdir(parents=True)
    folders.results.mkdir(parents=True, exist_ok=True)
    folders.progress.unlink(missing_ok=True)
    folders.notice.unlink(missing_ok=True)
    reach = reach_of(work.node, work.task.config)
    if task.code:
        fetch_code(task.code, folders.work, reach)
    if user:
        folders.environment.mkdir()
        folders.progress.touch()
        user.own(folders.work, folders.results, folders.environment, folders.progress)
    environ = {**os.environ, **(user.variables if user else {})}
    data = _data(work.node, work.task.config, task)
    resume = _index_and_checkpoint(work.node, task, folders, reach)
    given = (folders.results, folders.progress, folders.notice)
    places = Places(data, folders.index, *given, own_bin(), resume, None)
    environment = job_environment(environ, work.task.config, task, places, mark)
    if not task.requirements:
        return environment
    installer = Installer(folders.work, environment, log, work.stop, user)
    venv_bin = installer.install(task.requirements, folders.environment)
    places = Places(data, folders.index, *given, venv_bin, resume, folders.environment)
    return job_environment(environ, work.task.config, task, places, mark)


def _index_and_checkpoint(node: Node, task: TrainTask, folders: JobFolders, reach: OpenBucket) -> Path | None:
    """Write the index of the data set; return the newest complete checkpoint of the former attempt, if there is one."""
    what = "the index of the data set"
    try:
        write_index(node, task.index_parts, folders.index)
        what = "the newest checkpoint of the former attempt"
        key = checkpoint_key(node.prefix, task.node_rank)
        return bring_back(open_bucket(node.run_bucket), key, folders.resume, reach)
    except (ConfigError, *S3_ERRORS) as error:
        raise DataUnusable(f"{what} cannot be read: {first_line(error)}") from error


def _data(node: Node, config: NodeConfig, task: TrainTask) -> str:
    """Return what HEADRACE_DATA says: a folder, or the addresses that the command reads itself, one a line."""
    if task.direct_sources:
        return "\n".join(task.direct_sources)
    if not node.process_node:
        if not is_mounted(node.data):
            raise DataUnusable(f"nothing is mounted on {node.data}; run `headrace-agent configure` first")
        return str(node.data)
    shutil.rmtree(node.data, ignore_errors=True)
    merge(dataset_folders(node, config), node.data)
    return str(node.data)
