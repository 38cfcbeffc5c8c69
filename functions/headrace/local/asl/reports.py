"""A closed or changed execution as AWS reports it: to the parent that waits for it, and on the event bus."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.local.asl.arns import ACCOUNT, REGION, machine_arn
from headrace.local.asl.history import timestamp
from headrace.local.asl.payloads import size_bytes
from headrace.local.asl.record import Execution

Json = Any
_EVENT_BYTES = 248 * 1024
"""Input and output together above this are left out of the event, says AWS's page on EventBridge."""


def sync_result(execution: Execution) -> dict[str, Json]:
    """Return what `startExecution.sync:2` hands its parent once this child is closed.

    Keys, order and units were measured on AWS (floci-io/floci, AslExecutorNestedStartExecutionTest).
    """
    redrivable = execution.status not in ("RUNNING", "SUCCEEDED")
    envelope: dict[str, Json] = {
        "ExecutionArn": execution.arn,
        "Input": execution.input,
        "InputDetails": {"Included": True},
        "Name": execution.name,
        "RedriveCount": 0,
        "RedriveStatus": "REDRIVABLE" if redrivable else "NOT_REDRIVABLE",
        "StartDate": _milliseconds(execution.started_at),
        "StateMachineArn": machine_arn(execution.machine.name),
        "Status": execution.status,
        "StopDate": _milliseconds(execution.stopped_at),
    }
    if execution.status == "SUCCEEDED":
        envelope |= {
            "Output": execution.output,
            "OutputDetails": {"Included": True},
            "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        }
    return dict(sorted((envelope | _given(Error=execution.error, Cause=execution.cause)).items()))


def status_event(execution: Execution, event_id: str, now: datetime) -> dict[str, Json]:
    """Return the event "Step Functions Execution Status Change".

    Input and output are JSON text; `error` and `cause` are absent keys where there is none, so
    always for TIMED_OUT. Sources: docs.aws.amazon.com/step-functions/latest/dg/
    eventbridge-integration.html and floci-io/floci issue 2733.
    """
    fits = size_bytes(execution.input_text) + size_bytes(execution.output_text or "") <= _EVENT_BYTES
    detail: dict[str, Json] = {
        "executionArn": execution.arn,
        "stateMachineArn": machine_arn(execution.machine.name),
        "name": execution.name,
        "status": execution.status,
        "startDate": _milliseconds(execution.started_at),
        "stopDate": _milliseconds(execution.stopped_at),
        "input": execution.input_text if fits else None,
        "inputDetails": {"included": fits},
        "output": execution.output_text if fits else None,
        "outputDetails": None if execution.output_text is None else {"included": fits},
    }
    return {
        "version": "0",
        "id": event_id,
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": ACCOUNT,
        "time": timestamp(now),
        "region": REGION,
        "resources": [execution.arn],
        "detail": detail | _given(error=execution.error, cause=execution.cause),
    }


def _given(**texts: str | None) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text is not None}


def _milliseconds(instant: datetime | None) -> int | None:
    return None if instant is None else round(instant.timestamp() * 1000)
