"""State AdmitRun: turns whatever triggered the execution into one run, checked, named and recorded once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.domain.instants import to_text
from headrace.domain.job import JobSpec
from headrace.domain.job_text import job_from_mapping, parse_job
from headrace.domain.run import PhaseMark, RunRow
from headrace.domain.triggers import Trigger, parse_trigger, refuse_loop, run_id_for
from headrace.handlers._entry import entry
from headrace.handlers._files import write_model
from headrace.handlers._rows import read_run
from headrace.handlers.on_execution_status import pointer_id
from headrace.ports import Cloud

OVERHEAD_HOURS = 1.0
"""Allowed to a run beyond its job's own hours: launching, staging, saving and releasing."""


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the run's id, its time limits, and whether another execution has the run already.

    Raises BadJob with every fault of the description, UnknownTrigger for an input that is none of the roads.
    """
    trigger = parse_trigger(request["given"], request["execution_arn"])
    job = _at_home(_job(trigger, cloud), cloud.settings.region)
    refuse_loop(trigger, job.results.to)
    row = _row(cloud, job, trigger, request["execution_arn"])
    is_new = cloud.runs.insert(row.run_id, "run", "run", row.model_dump(mode="json"))
    is_duplicate = not is_new and read_run(cloud, row.run_id).execution_arn != row.execution_arn
    if not is_duplicate:
        cloud.runs.insert(pointer_id(row.execution_arn), "pointer", "run", {"run_id": row.run_id})
        write_model(cloud, row, "job.json", job)
    return {"run_id": row.run_id, "is_duplicate": is_duplicate, "limits": _limits(cloud, job)}


handler = entry(step)


def _job(trigger: Trigger, cloud: Cloud) -> JobSpec:
    if trigger.job is not None:
        return job_from_mapping(trigger.job)
    if trigger.job_text is not None:
        return parse_job(trigger.job_text)
    return parse_job(cloud.objects.get(str(trigger.bucket), str(trigger.key)).decode())


def _at_home(job: JobSpec, region: str | None) -> JobSpec:
    """Return the job with its first input in the stack's region when it names none at all, as the plan then assumes.

    Where no input is in AWS, that is where its machines are.
    """
    if region is None or any(one.region for one in job.data):
        return job
    index = next((index for index, one in enumerate(job.data) if not one.endpoint), None)
    if index is None:
        here = job.compute.region or region
        return job.model_copy(update={"compute": job.compute.model_copy(update={"region": here})})
    at_home = job.data[index].model_copy(update={"region": region})
    return job.model_copy(update={"data": (*job.data[:index], at_home, *job.data[index + 1 :])})


def _row(cloud: Cloud, job: JobSpec, trigger: Trigger, execution_arn: str) -> RunRow:
    now = cloud.clock.now()
    return RunRow(
        run_id=run_id_for(job.name, trigger.dedupe_key),
        job_name=job.name,
        execution_arn=execution_arn,
        trigger=trigger.kind,
        phases=(PhaseMark(name="admitted", at=to_text(now)),),
        started_at=to_text(now),
        deadline_at=to_text(now + timedelta(hours=job.deadline_hours + OVERHEAD_HOURS)),
        budget_usd=job.budget_usd,
        max_seconds=job.deadline_hours * 3600,
        owner_process=cloud.settings.owner_process,
    )


def _limits(cloud: Cloud, job: JobSpec) -> dict[str, int]:
    """Return time-outs in seconds, each longer than the heartbeat's, as Step Functions demands.

    They come one heartbeat time-out after the job's own limits, which end the run with their reason in words.
    """
    heartbeat = cloud.settings.heartbeat_timeout_seconds
    hours = job.deadline_hours
    return {
        "heartbeat_timeout_seconds": heartbeat,
        "staging_seconds": heartbeat + 1 + int((hours + OVERHEAD_HOURS) * 3600),
        "training_seconds": heartbeat + 1 + int(hours * 3600),
        "salvage_seconds": heartbeat + 1 + job.results_grace_minutes * 60,
    }
