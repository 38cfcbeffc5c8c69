"""State ReportRun: writes the receipt once and the terminal status with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.domain.errors import ObjectMissing
from headrace.domain.instants import to_text
from headrace.domain.measures import measures_of
from headrace.domain.receipt import Receipt
from headrace.domain.receipts import Ending, write_receipt
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._entry import entry
from headrace.handlers._files import read_job, read_model, read_plan, results_address, write_model
from headrace.handlers._leftovers import remove_stray_receipts
from headrace.handlers._rows import change_run, enter_phase, read_run
from headrace.handlers._tally import tally
from headrace.ports import Cloud

SOURCE = "headrace.run"
T = TypeVar("T")


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return status, error and reason as reported; a run that has reported answers what it reported."""
    run_id = request["run_id"]
    if read_run(cloud, run_id).ended_at:
        return _reported(cloud, run_id)
    row = enter_phase(cloud, run_id, "ended")
    receipt, nodes = _receipt(cloud, row, None if row.results_checked_at else request["failure"])
    key = write_model(cloud, row, f"receipt-{cloud.entropy.token_hex(4)}.json", receipt)
    end = {
        "status": receipt.status,
        "failure": receipt.reason,
        "report_key": key,
        "ended_at": receipt.ended_at,
        "staging_token": None,
        "training_token": None,
        "salvage_token": None,
    }
    if not change_run(cloud, run_id, end, {"ended_at": None}) and read_run(cloud, run_id).report_key != key:
        return _reported(cloud, run_id)
    remove_stray_receipts(cloud, row.model_copy(update={"report_key": key}))
    cloud.bus.put(SOURCE, f"Run {receipt.status.title()}", {"run_id": run_id, "report_key": key})
    return {**_answer(receipt), "measures": measures_of(receipt, nodes)}


handler = entry(step)


def _reported(cloud: Cloud, run_id: str) -> dict[str, Any]:
    """Two may report at once; the row names the receipt of the one that came first, and no other stays.

    One that came second may have died before it removed its own, so whoever asks again removes it.
    """
    row = read_run(cloud, run_id)
    remove_stray_receipts(cloud, row)
    return _answer(read_model(cloud, row, str(row.report_key).removeprefix(row.prefix), Receipt))


def _answer(receipt: Receipt) -> dict[str, Any]:
    return {
        "run_id": receipt.run_id,
        "status": receipt.status,
        "error": "" if receipt.status == "SUCCEEDED" else f"Run{receipt.status.title()}",
        "reason": receipt.reason or "",
    }


def _receipt(cloud: Cloud, row: RunRow, failure: dict[str, Any] | None) -> tuple[Receipt, tuple[NodeRow, ...]]:
    plan, job = _read(lambda: read_plan(cloud, row)), _read(lambda: read_job(cloud, row))
    ending = Ending(
        status=_status(row, failure),
        reason=_reason(row, failure),
        ended_at=to_text(cloud.clock.now()),
        results=results_address(job, row.run_id) if job else None,
    )
    machines = tally(cloud, row, plan.region if plan else job.region if job else None)
    return write_receipt(row, machines.known, plan, ending, machines.strangers), machines.known


def _read(read: Callable[[], T]) -> T | None:
    """Return what is read, or None where it is not there: a run may end before it was planned."""
    try:
        return read()
    except ObjectMissing:
        return None


def _status(row: RunRow, failure: dict[str, Any] | None) -> Any:
    if failure is None:
        return "SUCCEEDED"
    return "STOPPED" if row.stop_requested_by else "FAILED"


def _reason(row: RunRow, failure: dict[str, Any] | None) -> str | None:
    if failure is None:
        return None
    if row.stop_requested_by:
        return f"stopped by {row.stop_requested_by}"
    cause = _plain(str(failure["cause"])) or "it ran longer than its limit"
    return f"{failure['state']}: {failure['error']}: {cause}"


def _plain(cause: str) -> str:
    """Return the message inside a cause: Lambda wraps it in JSON, and a nested machine wraps it once more."""
    try:
        wrapped = json.loads(cause)
    except ValueError:
        return cause
    if isinstance(wrapped, dict):
        for name in ("errorMessage", "Cause"):
            if isinstance(wrapped.get(name), str):
                return _plain(wrapped[name])
    return cause
