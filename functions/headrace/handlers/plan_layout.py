"""State PlanLayout: chooses machines and layout, and refuses what cannot work before anything is launched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import AccessDenied, CloudUnavailable, DestinationDenied, InfeasibleJob, ObjectMissing
from headrace.domain.instants import to_text
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planning import plan_under
from headrace.domain.policy import Policy
from headrace.domain.preflight import refusal, vcpus_needed
from headrace.domain.run import RunRow
from headrace.domain.salvage import lent_volumes
from headrace.domain.schedule import Schedule, schedule
from headrace.handlers._entry import entry
from headrace.handlers._files import objects_at, read_job, read_model, results_address, write_model
from headrace.handlers._leftovers import probe_place
from headrace.handlers._requests import first_requests
from headrace.handlers._rows import change_run, enter_phase, read_standing_run
from headrace.handlers._rules import keep_prices, read_rules
from headrace.handlers.admit_run import OVERHEAD_HOURS
from headrace.ports import Cloud

TIMES = ("launch_at", "compute_at")


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Write the plan beside the run; return the kind of storage, whether it lends room, and when to launch.

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
    _note_size(cloud, row, chosen)
    scheduled = _schedule(cloud, chosen)
    write_model(cloud, row, "plan.json", _with_reason(chosen, scheduled))
    _require_possible(cloud, row, chosen)
    times = _wait(cloud, row, job, scheduled) if scheduled else dict.fromkeys(TIMES, row.started_at)
    return {"storage": chosen.chosen.storage, "lends": bool(lent_volumes(chosen)), **times}


handler = entry(step)


def _note_size(cloud: Cloud, row: RunRow, chosen: Plan) -> None:
    if any(fleet.count > cloud.settings.large_above_nodes for fleet in chosen.chosen.fleets):
        change_run(cloud, row.run_id, {"is_large": True})


def _schedule(cloud: Cloud, chosen: Plan) -> Schedule | None:
    fleet = chosen.fleet("compute")
    found = cloud.checks.reservation(fleet.reservation) if fleet and fleet.reservation else None
    return schedule(chosen.chosen, found, cloud.clock.now()) if found else None


def _with_reason(chosen: Plan, scheduled: Schedule | None) -> Plan:
    if scheduled is None:
        return chosen
    reasons = (*chosen.chosen.reasons, scheduled.because)
    return chosen.model_copy(update={"chosen": chosen.chosen.model_copy(update={"reasons": reasons})})


def _wait(cloud: Cloud, row: RunRow, job: JobSpec, scheduled: Schedule) -> dict[str, str]:
    """Note from when on the run's hours count, and that it waits; return the instants that the machine waits for.

    The run ends before the machines of a block are taken from it.
    """
    allowed = timedelta(hours=job.deadline_hours + OVERHEAD_HOURS)
    deadline_at = min(filter(None, (scheduled.launch_at + allowed, scheduled.taken_at)))
    launch_at = to_text(scheduled.launch_at)
    change_run(cloud, row.run_id, {"launch_at": launch_at, "deadline_at": to_text(deadline_at)})
    if scheduled.launch_at > cloud.clock.now():
        enter_phase(cloud, row.run_id, "waiting")
    return {"launch_at": launch_at, "compute_at": to_text(scheduled.compute_at)}


def _require_approval(policy: Policy, job: JobSpec, chosen: Plan) -> None:
    fault = policy.approval_fault(job, chosen)
    if fault:
        raise InfeasibleJob(fault)


def _require_writable(cloud: Cloud, row: RunRow, job: JobSpec) -> None:
    """Try to write where results will go: permissions are found out before money is spent.

    In a bucket of ours a small object is written and removed. In another's an upload is begun and aborted, which needs
    no right to delete, and leaves no version and starts nothing there.
    """
    bucket, key = probe_place(results_address(job, row.run_id))
    try:
        objects = objects_at(cloud, job, row.run_id, bucket)
        if job.results.is_given:
            objects.try_upload(bucket, key)
        else:
            objects.put(bucket, key, b"")
            objects.delete(bucket, key)
    except (AccessDenied, CloudUnavailable) as error:
        raise DestinationDenied(
            f"results: {job.results.to!r} cannot be written: {error}. Allow s3:PutObject there, or name another place"
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
