"""State SaveLeftResults: has the storage nodes save what compute nodes that are gone left on them."""

from __future__ import annotations

from functools import partial
from typing import Any

from headrace.domain.job import JobSpec
from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import NodeConfig, SalvageConfig
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow
from headrace.domain.salvage import left_on, unsaved
from headrace.handlers._configs import read_fleets, send_document, write_configs
from headrace.handlers._entry import entry
from headrace.handlers._files import read_job, read_plan, results_place
from headrace.handlers._marks import begin_marks
from headrace.handlers._rows import change_run, enter_phase, read_nodes, read_standing_run
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Keep the task's token on the run's row and start the salvage; the agents' events complete the token."""
    run_id = request["run_id"]
    change_run(cloud, run_id, {"salvage_token": request["token"]})
    read_standing_run(cloud, run_id)
    row = enter_phase(cloud, run_id, "salvaging")
    plan, job, fleets = read_plan(cloud, row), read_job(cloud, row), read_fleets(cloud, row)
    lost = unsaved(plan, read_nodes(cloud, run_id, "compute"))
    nodes = standing(fleets.nodes, "storage")
    write_configs(cloud, row, plan, fleets, nodes, partial(_with_salvage, plan, job, lost))
    if row.is_large:
        begin_marks(cloud, run_id, "salvaging", nodes)
    return {"command_id": send_document(cloud, row, "salvage-results", "storage")}


handler = entry(step)


def _with_salvage(plan: Plan, job: JobSpec, lost: tuple[NodeRow, ...], node: NodeRow, config: NodeConfig) -> NodeConfig:
    """Return the configuration with the task, and without the exports by which the volumes were written."""
    fleet = plan.fleet("compute")
    places = fleet.count if fleet else 0
    salvage = SalvageConfig(
        left=left_on(plan, node, lost, lambda one: results_place(job, one, places)),
        results_grace_seconds=job.results_grace_minutes * 60,
    )
    exports = tuple(one for one in config.exports if one.phase != "always")
    return config.model_copy(update={"salvage": salvage, "exports": exports, "buckets": job.accesses})
