"""State PlanLayout: chooses machines and layout, and refuses what cannot work before anything is launched."""

from __future__ import annotations

from typing import Any

from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import AccessDenied, DestinationDenied, ObjectMissing
from headrace.domain.job import JobSpec
from headrace.domain.planner import plan
from headrace.domain.run import RunRow
from headrace.handlers._files import read_job, read_model, results_address, write_model
from headrace.handlers._leftovers import probe_place
from headrace.handlers._rows import enter_phase, read_standing_run
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Write the plan beside the run; return the kind of storage.

    Raises InfeasibleJob with the nearest thing that would work, DestinationDenied when the results bucket refuses.
    """
    row = read_standing_run(cloud, request["run_id"])
    enter_phase(cloud, row.run_id, "planning")
    job = read_job(cloud, row)
    _require_writable(cloud, row, job)
    summary = read_model(cloud, row, "dataset/summary.json", DatasetSummary)
    chosen = plan(job, summary, cloud.prices.catalog(job.region), cloud.prices.price_list(job.region))
    write_model(cloud, row, "plan.json", chosen)
    return {"storage": chosen.chosen.storage}


def _require_writable(cloud: Cloud, row: RunRow, job: JobSpec) -> None:
    """Write and remove a small object where results will go: permissions are found out before money is spent."""
    bucket, key = probe_place(results_address(job, row.run_id))
    try:
        cloud.objects.put(bucket, key, b"")
        cloud.objects.delete(bucket, key)
    except AccessDenied as error:
        raise DestinationDenied(
            f"results: {job.results!r} cannot be written: {error}. Allow s3:PutObject there, or name another place"
        ) from None
    except ObjectMissing:
        raise DestinationDenied(f"results: the bucket {bucket!r} does not exist; create it, or name another") from None
