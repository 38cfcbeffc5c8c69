"""The environment of the job's command: what it may know, and nothing that is the agent's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.config import NodeConfig, TrainTask
from headrace_agent.node import NODE_FILE_VARIABLE
from headrace_agent.process_tree import MARK_VARIABLE

DEFAULT_RENDEZVOUS_PORT = "29500"
"""The port that torchrun uses by default."""


@dataclass(frozen=True)
class Places:
    """What the command is told about where things are; `data` is a folder, or S3 addresses, one a line."""

    data: str
    index: Path
    results: Path
    progress: Path
    notice: Path
    first_on_path: Path
    resume: Path | None
    virtual_environment: Path | None


def job_environment(
    given: Mapping[str, str], config: NodeConfig, task: TrainTask, places: Places, mark: str
) -> dict[str, str]:
    """Return the environment for the command.

    The agent's AWS settings stay only for a job that reads S3 itself, and keys of other buckets never; the job's own
    variables win over all but HEADRACE_*.
    """
    keeps_aws = bool(task.direct_sources)
    secrets = (one.credentials.removeprefix("env:") for one in config.buckets if one.credentials)
    hidden = {NODE_FILE_VARIABLE, *secrets}
    environment = {
        name: value
        for name, value in given.items()
        if name not in hidden and (keeps_aws or not name.startswith("AWS_"))
    }
    environment.setdefault("PYTHONUNBUFFERED", "1")
    environment |= torch_variables(task)
    environment |= task.variables
    environment["PATH"] = f"{places.first_on_path}{os.pathsep}{environment.get('PATH', os.defpath)}"
    if places.virtual_environment:
        environment["VIRTUAL_ENV"] = str(places.virtual_environment)
    return environment | _headrace_variables(config, task, places) | {MARK_VARIABLE: mark}


def torch_variables(task: TrainTask) -> dict[str, str]:
    """Return what torch's `env://` rendezvous and torchrun read.

    One process per node is started, so RANK and WORLD_SIZE count nodes; torchrun sets them anew for the processes
    that it starts, and takes PET_* as the defaults of its options (torch.distributed.argparse_util.env).
    """
    address, _, port = task.rendezvous_address.partition(":")
    shared = {"MASTER_ADDR": address, "MASTER_PORT": port or DEFAULT_RENDEZVOUS_PORT, "NODE_RANK": str(task.node_rank)}
    return {
        **shared,
        "RANK": str(task.node_rank),
        "WORLD_SIZE": str(task.node_count),
        "PET_NNODES": str(task.node_count),
        "PET_NPROC_PER_NODE": str(max(1, task.accelerators)),
        **{f"PET_{name}": value for name, value in shared.items()},
    }


def _headrace_variables(config: NodeConfig, task: TrainTask, places: Places) -> dict[str, str]:
    return {
        "HEADRACE_DATA": places.data,
        "HEADRACE_INDEX": str(places.index),
        "HEADRACE_RESULTS": str(places.results),
        "HEADRACE_PROGRESS": str(places.progress),
        "HEADRACE_NOTICE": str(places.notice),
        "HEADRACE_RUN": config.run_id,
        "HEADRACE_NODE": config.node_id,
        "HEADRACE_NODE_RANK": str(task.node_rank),
        "HEADRACE_NODE_COUNT": str(task.node_count),
        "HEADRACE_ATTEMPT": str(config.attempt),
        **({"HEADRACE_RESUME": str(places.resume)} if places.resume else {}),
    }
