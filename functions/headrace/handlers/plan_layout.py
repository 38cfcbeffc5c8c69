"""State PlanLayout: chooses machines and layout, and refuses what cannot work before anything is launched."""

from __future__ import annotations

from typing import Any

from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import AccessDenied, DestinationDenied, InfeasibleJob, ObjectMissing
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planning import plan_under
from headrace.domain.policy import Policy
from headrace.domain.preflight import refusal, vcpus_needed
from headrace.domain.run import RunRow
from headrace.handlers._entry import entry
from headrace.handlers._files import read_job, read_model, results_address, write_model
from headrace.handlers._leftovers import probe_place
from headrace.handlers._requests import first_requests
from headrace.handlers._rows import change_run, enter_phase, read_standing_run
from headrace.handlers._rules import keep_prices, read_rules
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Write the plan beside the run; return the kind of storage.

    Raises InfeasibleJob with the nearest thing that would work, DestinationDenied when the results bucket refuses,
    QuotaExceeded when the account allows too few machines, BadSettings when the team's own files are not valid.
    """
    row = read_standing_run(cloud, request["run_id"])
    enter_phase(cloud, row.run_id, "planning")
    job = read_job(cloud, row)
    _require_writable(cloud, row, job)
    summary = read_model(cloud, row, "dataset/summary.json", DatasetSummary)
    rules = read_rules(cloud)
    chosen = plan_under(rules.policy, job, summary, lambda region: rules.market(cloud, region))
    _require_approval(rules.policy, job, chosen)
    keep_prices(cloud, row, rules)
    if any(fleet.count > cloud.settings.large_above_nodes for fleet in chosen.chosen.fleets):
        change_run(cloud, row.run_id, {"is_large": True})
    write_model(cloud, row, "plan.json", chosen)
    _require_possible(cloud, row, chosen)
    return {"storage": chosen.chosen.storage}


handler = entry(step)


def _require_approval(policy: Policy, job: JobSpec, chosen: Plan) -> None:
    fault = policy.approval_fault(job, chosen)
    if fault:
        raise InfeasibleJob(fault)


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


def _require_possible(cloud: Cloud, row: RunRow, chosen: Plan) -> None:
    needed = vcpus_needed(chosen.chosen.fleets, cloud.prices.catalog(chosen.region))
    findings = cloud.checks.look(first_requests(row, chosen), tuple(quota.code for quota in needed))
    if error := refusal(needed, findings):
        raise error
    if findings.warnings:
        assumptions = (*chosen.assumptions, *findings.warnings)
        write_model(cloud, row, "plan.json", chosen.model_copy(update={"assumptions": assumptions}))
