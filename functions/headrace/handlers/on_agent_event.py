"""Called for every event of an agent: verifies it, records it once, and tells the waiting task what it means."""

from __future__ import annotations

import json
from typing import Any, get_args

from pydantic import ValidationError

from headrace.domain.errors import EventRefused, ObjectMissing
from headrace.domain.event_bodies import parse_body
from headrace.domain.events import MAX_EVENT_BYTES, SOURCE, DetailType, EventDetail, is_signed_by
from headrace.domain.lifecycle import TELEMETRY, changes_for
from headrace.domain.nodeconfig import Identity
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.wire import is_within
from headrace.handlers._entry import entry
from headrace.handlers._files import node_file, read_model
from headrace.handlers._lease import renew_lease
from headrace.handlers._rows import ATTEMPTS, change_node, read_node, read_run
from headrace.handlers._waiting import answer_waiting_task
from headrace.ports import Cloud


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Apply one EventBridge envelope; a repeated one changes nothing.

    Raises EventRefused when it is forged, foreign, stale or malformed, and then changes nothing either.
    """
    detail_type = str(request.get("detail-type"))
    detail = _parse(request, detail_type)
    run, node = _addressee(cloud, detail)
    _verify(cloud, run, node, detail_type, request["detail"])
    if not _record(cloud, node, detail_type, detail):
        return {"applied": False}
    answer_waiting_task(cloud, run, node.node_id, detail_type)
    _mark_applied(cloud, detail_type, detail)
    if detail_type != "Node Leaving":
        renew_lease(cloud, run, node)
    return {"applied": True}


handler = entry(step)


def _parse(request: dict[str, Any], detail_type: str) -> EventDetail:
    if request.get("source") != SOURCE or detail_type not in get_args(DetailType):
        raise EventRefused(f"not an event of an agent: source {request.get('source')!r}, type {detail_type!r}")
    if not is_within(request.get("detail"), MAX_EVENT_BYTES):
        size_bytes = len(json.dumps(request.get("detail")))
        raise EventRefused(f"the detail has {size_bytes} bytes, more than {MAX_EVENT_BYTES}")
    try:
        detail = EventDetail.model_validate(request.get("detail"), strict=True)
        parse_body(detail_type, detail.body)
    except ValidationError as error:
        raise EventRefused(f"malformed: {error.error_count()} faults, first at {error.errors()[0]['loc']}") from None
    return detail


def _addressee(cloud: Cloud, detail: EventDetail) -> tuple[RunRow, NodeRow]:
    node = read_node(cloud, detail.run_id, detail.node_id)
    if node is None or node.attempt != detail.attempt:
        raise EventRefused(f"run {detail.run_id} has no node {detail.node_id} of attempt {detail.attempt}")
    run = read_run(cloud, detail.run_id)
    if run.ended_at:
        raise EventRefused(f"run {detail.run_id} ended at {run.ended_at}")
    return run, node


def _verify(cloud: Cloud, run: RunRow, node: NodeRow, detail_type: str, detail: dict[str, Any]) -> None:
    try:
        identity = read_model(cloud, run, node_file(cloud, node.node_id, "identity.json"), Identity)
    except ObjectMissing:
        raise EventRefused(f"the key of node {node.node_id} was deleted") from None
    if not is_signed_by(detail_type, detail, bytes.fromhex(identity.hmac_key)):
        raise EventRefused(f"the signature is not that of node {node.node_id}")


def _record(cloud: Cloud, node: NodeRow, detail_type: str, detail: EventDetail) -> bool:
    """Change the node's row; return False when the event was applied before or is older than what is known."""
    if detail_type not in TELEMETRY:
        item = {"detail_type": detail_type, "sequence": detail.sequence, "is_applied": False}
        is_new = cloud.runs.insert(detail.run_id, "event", detail.event_id, item)
        if not is_new and (cloud.runs.read(detail.run_id, "event", detail.event_id) or {}).get("is_applied"):
            return False
    for _ in range(ATTEMPTS):
        changes = changes_for(node, detail_type, detail.sequence, detail.body, cloud.clock.now())
        expecting = {"last_sequence": node.last_sequence, "state": node.state}
        if not changes or change_node(cloud, node, changes, expecting):
            return bool(changes)
        node = read_node(cloud, node.run_id, node.node_id) or node
    raise RuntimeError(f"node {node.node_id}: {ATTEMPTS} writers came between; the event is to be delivered again")


def _mark_applied(cloud: Cloud, detail_type: str, detail: EventDetail) -> None:
    if detail_type not in TELEMETRY:
        cloud.runs.update(detail.run_id, "event", detail.event_id, {"is_applied": True}, {})
