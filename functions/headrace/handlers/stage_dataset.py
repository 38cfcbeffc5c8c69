"""State StageDataset: shares the data set out among the nodes that hold its volumes and starts the copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.domain.assignment import assign
from headrace.domain.dataset import FILES_PER_PART, DatasetFile, DatasetPart, DatasetSummary
from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import NodeConfig, StageConfig
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._configs import read_fleets, send_document, write_configs
from headrace.handlers._entry import entry
from headrace.handlers._files import read_job, read_model, read_plan, write_model
from headrace.handlers._marks import begin_marks
from headrace.handlers._rows import change_node, change_run, enter_phase, read_standing_run
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Keep the task's token on the run's row and start staging; the agents' events complete the token."""
    run_id = request["run_id"]
    row = read_standing_run(cloud, run_id)
    plan = read_plan(cloud, row)
    role = plan.dataset_volumes[0].held_by
    change_run(cloud, run_id, {"staging_token": request["token"], "staging_role": role})
    row = enter_phase(cloud, run_id, "staging")
    fleets = read_fleets(cloud, row)
    nodes = standing(fleets.nodes, role)
    shares, buckets = _shares(cloud, row, plan, nodes), read_job(cloud, row).accesses

    def complete(node: NodeRow, config: NodeConfig) -> NodeConfig:
        return config.model_copy(update={"stage": shares[node.node_id], "buckets": buckets})

    write_configs(cloud, row, plan, fleets, nodes, complete)
    if row.is_large:
        begin_marks(cloud, run_id, "staging", nodes)
    for node in nodes:
        share = shares[node.node_id]
        empty = {"files": 0, "bytes": 0, "total_files": share.files, "total_bytes": share.bytes, "rate_bytes_per_s": 0}
        change_node(cloud, node, {"staged": empty}, {"staged": {}})
    return {"command_id": send_document(cloud, row, "stage-dataset", role)}


handler = entry(step)


def _shares(cloud: Cloud, row: RunRow, plan: Plan, nodes: Sequence[NodeRow]) -> dict[str, StageConfig]:
    files = list(_read_files(cloud, row))
    volumes = plan.dataset_volumes
    if volumes[0].held_by == "compute":
        split = [files for _ in volumes]
    else:
        split = [list(share) for share in assign(files, len(volumes))]
    is_hashed = any(one.verify == "checksum" for one in read_job(cloud, row).data)
    by_index: dict[int, list[DatasetFile]] = {}
    for volume, share in zip(volumes, split, strict=True):
        by_index.setdefault(volume.hydrator_node_index, []).extend(share)
    shares = {node.node_id: _share(cloud, row, node, by_index.get(node.index, [])) for node in nodes}
    return {node_id: share.model_copy(update={"is_hashed": is_hashed}) for node_id, share in shares.items()}


def index_name(node: NodeRow) -> str:
    """Return the key, below the run's prefix, of the index of what a node staged."""
    return f"staging/{node.role}-{node.index}/index.jsonl"


def _read_files(cloud: Cloud, row: RunRow) -> Iterator[DatasetFile]:
    for name in read_model(cloud, row, "dataset/summary.json", DatasetSummary).parts:
        yield from read_model(cloud, row, name, DatasetPart).files


def _share(cloud: Cloud, row: RunRow, node: NodeRow, files: Sequence[DatasetFile]) -> StageConfig:
    parts = []
    for number, start in enumerate(range(0, len(files), FILES_PER_PART)):
        name = f"staging/{node.role}-{node.index}/part-{number:05d}.json"
        write_model(cloud, row, name, DatasetPart(files=tuple(files[start : start + FILES_PER_PART])))
        parts.append(name)
    return StageConfig(
        parts=tuple(parts),
        files=len(files),
        bytes=sum(file.bytes for file in files),
        progress_seconds=cloud.settings.heartbeat_seconds,
        index=index_name(node),
    )
