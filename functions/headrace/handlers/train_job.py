"""State TrainJob: tells every compute node its command and place, and starts it on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.domain.dataset import DatasetSummary
from headrace.domain.job import JobSpec
from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import NodeConfig, TrainConfig
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._configs import read_fleets, send_document, write_configs
from headrace.handlers._entry import entry
from headrace.handlers._files import read_job, read_model, read_plan, results_place
from headrace.handlers._marks import begin_marks
from headrace.handlers._rows import change_run, enter_phase, read_standing_run
from headrace.handlers.stage_dataset import index_name
from headrace.ports import Cloud

LOG_BYTES_MAX = 16 * 1024**2


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Keep the task's token on the run's row and start the command; the agents' events complete the token."""
    run_id = request["run_id"]
    change_run(cloud, run_id, {"training_token": request["token"]})
    read_standing_run(cloud, run_id)
    row = enter_phase(cloud, run_id, "training")
    plan, job, fleets = read_plan(cloud, row), read_job(cloud, row), read_fleets(cloud, row)
    nodes = standing(fleets.nodes, "compute")
    index = _shared_index(cloud, row, plan, fleets.nodes)

    def complete(node: NodeRow, config: NodeConfig) -> NodeConfig:
        train = _train(cloud, plan, job, node, nodes, index or (index_name(node),))
        return config.model_copy(update={"train": train, "buckets": job.accesses})

    write_configs(cloud, row, plan, fleets, nodes, complete)
    if row.is_large:
        begin_marks(cloud, run_id, "training", nodes)
    return {"command_id": send_document(cloud, row, "train-job", "compute")}


handler = entry(step)


def _shared_index(cloud: Cloud, row: RunRow, plan: Plan, nodes: Sequence[NodeRow]) -> tuple[str, ...]:
    """Return what makes the index of the data set for every node; empty when each node staged all of it by itself."""
    if plan.chosen.storage == "direct":
        return read_model(cloud, row, "dataset/summary.json", DatasetSummary).parts
    if plan.dataset_volumes[0].held_by == "compute":
        return ()
    return tuple(index_name(node) for node in standing(nodes, "storage"))


def _train(
    cloud: Cloud,
    plan: Plan,
    job: JobSpec,
    node: NodeRow,
    nodes: Sequence[NodeRow],
    index_parts: tuple[str, ...],
) -> TrainConfig:
    fleet = plan.fleet("compute")
    bucket, prefix = results_place(job, node, len(nodes))
    return TrainConfig(
        command=job.command,
        variables=job.environment.variables,
        code=job.code,
        requirements=job.environment.requirements,
        node_rank=node.index,
        node_count=len(nodes),
        rendezvous_address=nodes[0].address,
        accelerators=fleet.accelerators_each if fleet else 0,
        data_inputs=tuple(one.name for one in job.data),
        direct_sources=tuple(one.source for one in job.data) if plan.chosen.storage == "direct" else (),
        index_parts=index_parts,
        results_bucket=bucket,
        results_prefix=prefix,
        stop_grace_seconds=cloud.settings.stop_grace_seconds,
        results_grace_seconds=job.results_grace_minutes * 60,
        log_bytes_max=LOG_BYTES_MAX,
    )
