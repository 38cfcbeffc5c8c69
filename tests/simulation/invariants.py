"""What must hold of every run whatever went wrong: reliability.md section 4, judged by the ledger alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pydantic_core import to_json

from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.site import SimulatedSite
from tests.simulation.helpless import helpless_seconds
from tests.simulation.ledger import Ledger, MachineRecord
from tests.simulation.scenarios import Scenario, is_absorbed
from tests.simulation.working import NOTICED_SECONDS, at_work, incomplete_data

LATE_SECONDS = 900.0
DEADLINE_GRACE_SECONDS = 300.0
LEASE_SECONDS = 1200.0 + 300.0
"""How long a machine without work stays when it hears nothing, and what is allowed on top."""
RUN_BUCKET = "headrace-runs"
CENT = Decimal("0.01")


def violations(site: SimulatedSite, ledger: Ledger, scenario: Scenario) -> list[str]:
    """Return every breach, each beginning with the name of its invariant."""
    found = list(ledger.at_once)
    found += _forgeries(ledger)
    found += _counts(ledger, site.cloud.settings.launch_attempts)
    found += _admissions(site, scenario)
    found += _secrets(site, ledger)
    runs = site.functions.truth.runs
    for run_id in runs.run_ids():
        row = runs.read(run_id, "run", "run") or {}
        if not _is_beyond_help(site, ledger, run_id):
            found += _ending(site, ledger, row)
            found += _outlived(site, ledger, row)
        found += at_work(site.plan.injected, ledger, row)
        found += _success(site, ledger, row, scenario)
        found += _salvage(site, ledger, row)
        found += _bill(site, ledger, row)
        found += _expected(site, row, scenario)
    if not scenario.is_feasible and ledger.machines:
        found.append(f"infeasible: {len(ledger.machines)} machines were launched for a job that cannot work")
    return found


def _is_beyond_help(site: SimulatedSite, ledger: Ledger, run_id: str) -> bool:
    """Tell whether a machine of the run can be ended by nobody: termination is denied for ever, and it never booted.

    Such a run stays open, for a person to see: it must not claim an end that has not come.
    """
    is_denied = any(fault.kind == "terminate_denied" and not fault.seconds for fault in site.plan.injected)
    return is_denied and any(one.released_s is None and not one.said for one in ledger.of_run(run_id))


def _forgeries(ledger: Ledger) -> Iterator[str]:
    yield from (f"forged: an event was {what}" for _, actor, what in ledger.timeline if actor == "forgery")


def _counts(ledger: Ledger, attempts: int) -> Iterator[str]:
    by_role: dict[tuple[str, str], list[MachineRecord]] = {}
    by_attempt: dict[tuple[str, str, int], set[str]] = {}
    for one in ledger.machines.values():
        by_role.setdefault((one.run_id, one.role), []).append(one)
        by_attempt.setdefault((one.run_id, one.role, one.attempt), set()).add(one.client_token)
    for (run_id, role), machines in by_role.items():
        if len(machines) > ledger.planned[role] * attempts:
            yield f"runaway: {len(machines)} {role} machines of {run_id} in all"
    for (run_id, role, attempt), tokens in by_attempt.items():
        if len(tokens) > 1:
            yield f"two fleets: attempt {attempt} of {role} of {run_id} was launched under {len(tokens)} tokens"


def _admissions(site: SimulatedSite, scenario: Scenario) -> Iterator[str]:
    count = len(list(site.functions.truth.runs.run_ids()))
    if count > len(scenario.jobs):
        yield f"duplicate: {count} runs came of {len(scenario.jobs)} triggers"


def _secrets(site: SimulatedSite, ledger: Ledger) -> Iterator[str]:
    """Yield every signing key that stands in a row, a timeline or an event."""
    runs = site.functions.truth.runs
    kinds = ("run", "node", "event", "command", "pointer")
    rows = to_json([runs.items(run_id, kind) for run_id in runs.run_ids() for kind in kinds]).decode()
    said = to_json([ledger.timeline, ledger.envelopes]).decode()
    yield from (f"secret: a key is in a row: {key[:6]}..." for key in ledger.keys if key in rows)
    yield from (f"secret: a key is in an event or log: {key[:6]}..." for key in ledger.keys if key in said)


def _ending(site: SimulatedSite, ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    run_id = row["run_id"]
    receipts = [key for bucket, key in ledger.objects if bucket == RUN_BUCKET and f"runs/{run_id}/receipt-" in key]
    if row["status"] not in ("SUCCEEDED", "FAILED", "STOPPED") or not row["ended_at"]:
        yield f"no end: {run_id} is {row['status']}, ended at {row['ended_at']}"
    elif receipts != [row["report_key"]]:
        yield f"receipts: {run_id} has {receipts}, its row names {row['report_key']}"
    nodes = [key for bucket, key in ledger.objects if bucket == RUN_BUCKET and f"runs/{run_id}/nodes/" in key]
    if nodes:
        yield f"keys: {nodes} are left"
    if uploads := [key for _, key in site.objects.half_uploads if f"/{run_id}/" in key]:
        yield f"uploads: of {uploads} halves are left"
    if row["ended_at"] and not row["tombstone_at"]:
        yield f"no tombstone: {run_id} ended without one"


NO_LEASE = frozenset({"hang", "crash", "no_boot", "spot", "rack", "vanishing"})


def pardon_seconds(faults: Sequence[Fault]) -> float:
    """Return for how long nothing could be done from outside, since nobody was there or allowed to.

    Then a machine ends itself when its lease runs out. One whose agent cannot, or whose job runs on, has its deadline,
    which is another check; a job runs on when it hangs, also for want of a storage machine that was lost.
    """
    total = sum(helpless_seconds(fault) for fault in faults)
    has_lease = not any(fault.kind in NO_LEASE for fault in faults)
    return min(total, LEASE_SECONDS) if has_lease else total


def excess_seconds(ledger: Ledger, row: dict[str, Any]) -> Iterator[tuple[MachineRecord, float]]:
    """Yield each machine of a run and for how long it was there after the run was over."""
    closed = ledger.closed.get(row["execution_arn"], (ledger.now(), ""))[0]
    over = min(closed, ledger.work_ended.get(row["run_id"], closed))
    for one in ledger.of_run(row["run_id"]):
        end = ledger.now() if one.released_s is None else one.released_s
        yield one, end - max(over, one.launched_s)


def _outlived(site: SimulatedSite, ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    pardon = pardon_seconds(site.plan.injected)
    # A dead control plane also stops the clock of a function that was paused; no Lambda would live so long.
    slept = {"outage", "paused"} <= {fault.kind for fault in site.plan.injected}
    slow = sum(-fault.value for fault in site.plan.injected if fault.kind == "skew" and fault.value < 0)
    for one, excess in excess_seconds(ledger, row):
        end = ledger.now() if one.released_s is None else one.released_s
        could_end_itself = bool(one.said) or not pardon
        if could_end_itself and end > max(one.deadline_s, one.launched_s) + DEADLINE_GRACE_SECONDS + slow:
            yield f"deadline: {one.node_id} was there {end - one.deadline_s:.0f} s after its deadline"
        if one.launched_s > one.deadline_s and not slept:
            yield f"too late: {one.node_id} was launched after its deadline"
        if excess > LATE_SECONDS + pardon:
            yield f"outlived: {one.node_id} ({one.role}) was there {excess:.0f} s after {row['run_id']} was over"


def _success(site: SimulatedSite, ledger: Ledger, row: dict[str, Any], scenario: Scenario) -> Iterator[str]:
    if row["status"] != "SUCCEEDED":
        return
    done = [one for one in ledger.of_run(row["run_id"]) if "Job Done" in one.said]
    if len(done) != scenario.planned["compute"]:
        yield f"false success: {len(done)} of {scenario.planned['compute']} compute nodes said Job Done"
    yield from incomplete_data(site, ledger, row["run_id"])
    for one in done:
        yield from _saved(site, ledger, row["run_id"], one.node_id)


def _salvage(site: SimulatedSite, ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    """Yield what is said to be saved of a lost machine and is not, and what could have been saved and was not."""
    run_id = row["run_id"]
    nodes = site.functions.truth.runs.items(run_id, "node")
    ranks = {rank for node in nodes for rank in node["salvaged"].get("ranks", ())}
    written = [node for node in nodes if site.scratch.holds(run_id, node["node_id"])]
    left = [one for one in written if {"Job Done", "Job Failed"}.isdisjoint(ledger.machines[one["node_id"]].said)]
    for node in left:
        if node["index"] in ranks:
            yield from _saved(site, ledger, run_id, node["node_id"])
    troubles = [fault for fault in site.plan.injected if not is_absorbed(fault)]
    is_only_loss = len(troubles) == 1 and _is_loss_of_compute(troubles[0], ledger)
    if is_only_loss and row["status"] == "FAILED" and not {node["index"] for node in left} <= ranks:
        yield f"left behind: {run_id} lost one compute node, and what was left of {len(left)} was saved of {ranks}"


def _is_loss_of_compute(fault: Fault, ledger: Ledger) -> bool:
    is_loss = fault.where == "machine" and fault.kind in ("spot", "crash") and not fault.value
    struck = [what.rpartition(" on ")[2] for _, actor, what in ledger.timeline if actor == "fault" and " on " in what]
    return is_loss and all(
        ledger.machines[node_id].role == "compute" for node_id in struck if node_id in ledger.machines
    )


def _saved(site: SimulatedSite, ledger: Ledger, run_id: str, node_id: str) -> Iterator[str]:
    folder = f"runs/{run_id}/"
    if (RUN_BUCKET, f"{folder}results/{node_id}/manifest.json") not in ledger.objects:
        yield f"false success: {node_id} has no manifest"
        return
    manifest = json.loads(site.objects.get(RUN_BUCKET, f"{folder}results/{node_id}/manifest.json"))
    for part in manifest["parts"]:
        for file in json.loads(site.objects.get(RUN_BUCKET, folder + part))["files"]:
            size = ledger.objects.get((manifest["bucket"], file["key"]))
            found = site.objects.head(manifest["bucket"], file["key"]).etag if size is not None else None
            if (size, found) != (file["bytes"], file["etag"]):
                yield f"false success: {file['key']} has {size} bytes, ETag {found}; the manifest says {file}"


def _bill(site: SimulatedSite, ledger: Ledger, row: dict[str, Any]) -> Iterator[str]:
    true = _cost_usd(site, ledger, row["run_id"])
    yield from _budget(site, ledger, row, true)
    if not row["report_key"] or (RUN_BUCKET, row["report_key"]) not in ledger.objects:
        return
    receipt = json.loads(site.objects.get(RUN_BUCKET, row["report_key"]))
    if abs(Decimal(repr(receipt["usd"])) - true) > CENT:
        yield f"bill: the receipt says {receipt['usd']} USD, the machines cost {true:.4f}"


def _cost_usd(site: SimulatedSite, ledger: Ledger, run_id: str) -> Decimal:
    prices = site.functions.truth.prices.price_list("us-east-1").on_demand
    cost = Decimal(0)
    for one in ledger.of_run(run_id):
        end = ledger.now() if one.released_s is None else one.released_s
        cost += Decimal(repr(end - one.launched_s)) * Decimal(repr(prices[one.instance_type])) / 3600
    return cost


def _budget(site: SimulatedSite, ledger: Ledger, row: dict[str, Any], cost: Decimal) -> Iterator[str]:
    """Yield a run that spent more than its budget and what its machines cost while that is noticed."""
    if row["budget_usd"] is None:
        return
    prices = site.functions.truth.prices.price_list("us-east-1").on_demand
    usd_per_hour = sum(prices[one.instance_type] for one in ledger.of_run(row["run_id"]))
    patience_seconds = NOTICED_SECONDS + sum(map(helpless_seconds, site.plan.injected))
    if float(cost) > row["budget_usd"] + usd_per_hour * patience_seconds / 3600:
        yield f"budget: {row['run_id']} spent {cost:.4f} of {row['budget_usd']} USD"


def _expected(site: SimulatedSite, row: dict[str, Any], scenario: Scenario) -> Iterator[str]:
    troubles = [fault for fault in site.plan.injected if not is_absorbed(fault)]
    if sum(fault.kind == "stale" for fault in site.plan.injected) > 1:
        return  # Two looks at two stale answers are fooled.
    if scenario.is_feasible and not troubles and row["status"] != "SUCCEEDED":
        yield f"not absorbed: {row['run_id']} is {row['status']}: {row['failure']}"
    if not scenario.is_feasible and row["status"] == "SUCCEEDED":
        yield f"impossible: {row['run_id']} succeeded"
