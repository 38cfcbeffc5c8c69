"""Stages a prefix as an agent does: a manifest in the bucket, then the task that fills a volume from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import obstore

from headrace_agent import stage as staging
from headrace_agent.config import NodeConfig, StageTask, Volume
from headrace_agent.node import Node
from headrace_agent.s3 import open_bucket, plain_etag
from headrace_agent.spool import Task
from headrace_agent.work import Work

FILES_PER_PART = 10_000


def stage(bucket: str, prefix: str, folder: Path, *, is_hashed: bool = False) -> None:
    """Copy the prefix into `folder/volumes/v0`. Raises RuntimeError when not all is there at the end."""
    staging.PROCESS_NODE_STREAMS = staging.STREAMS
    parts, files, total_bytes = _write_manifest(bucket, prefix)
    task = StageTask(parts, files, total_bytes, progress_seconds=10.0, is_hashed=is_hashed)
    outcome = staging.run_stage(Work(_node(bucket, folder), Task("stage-1", "stage", _config(task)), _say_nothing))
    if outcome is None or outcome.detail_type != "Dataset Staged":
        raise RuntimeError(f"not staged: {outcome}")


def _write_manifest(bucket: str, prefix: str) -> tuple[tuple[str, ...], int, int]:
    store = open_bucket(bucket)
    listed = [one for batch in obstore.list(store, prefix) for one in batch]
    files = [
        {
            "source": f"s3://{bucket}/{one['path']}",
            "path": one["path"],
            "bytes": one["size"],
            "etag": plain_etag(one["e_tag"]),
        }
        for one in listed
    ]
    parts = []
    for number, start in enumerate(range(0, len(files), FILES_PER_PART)):
        parts.append(f"manifests/{prefix}part-{number:05d}.json")
        body = json.dumps({"files": files[start : start + FILES_PER_PART]}).encode()
        obstore.put(store, f"runs/bench/{parts[-1]}", body, use_multipart=False)
    return tuple(parts), len(files), sum(one["size"] for one in listed)


def _node(bucket: str, folder: Path) -> Node:
    deadline = datetime.now(UTC) + timedelta(hours=1)
    return Node("bench", "node-a", "compute", 1, bucket, "none", True, deadline, folder)


def _config(task: StageTask) -> NodeConfig:
    volume = Volume("v0", "dataset", "a", "b", "c", 131072, 1, hydrated_here=True, raid_level=0, slices=())
    return NodeConfig(
        run_id="bench",
        attempt=1,
        node_id="node-a",
        role="compute",
        host_nqn="nqn",
        address="127.0.0.1",
        fabric="tcp",
        soft_roce=False,
        heartbeat_seconds=10.0,
        volumes=(volume,),
        slices=(),
        exports=(),
        copies=(),
        imports=(),
        stage=task,
        train=None,
    )


def _say_nothing(detail_type: str, body: Any) -> None:
    """Report nothing: no bus is there."""
