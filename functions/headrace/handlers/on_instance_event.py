"""Called when EC2 says that a machine ends or will be taken back: does sooner what a missed heartbeat would do later.

Polling needs none of these events: `CheckNodes` sees an ended machine in its next listing, and a task that waits hears
no more heartbeats. A warning is watched for by the machine's own agent as well, which stops its job and leaves.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.domain.instance_events import NOTICE_SECONDS, InstanceEvent, read_instance_event
from headrace.domain.instants import from_text, to_text
from headrace.domain.lifecycle import end_in_words
from headrace.domain.nodeconfig import Notice
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._entry import entry
from headrace.handlers._notices import publish_warning, tell_jobs
from headrace.handlers._rows import ATTEMPTS, change_node, read_node, read_nodes
from headrace.handlers._waiting import tell_of_failure
from headrace.ports import Cloud, Node

OVER = frozenset({"done", "released"})
"""A node in one of these states may end without harm."""


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Apply one event of EC2; return whether it concerned a machine that a run needs.

    The cloud is asked whose machine it is and whether it truly ends. An event of another's machine, of one that was
    asked to go, or of a run that is being ended changes nothing.
    """
    event = read_instance_event(request)
    node = cloud.fleets.find(event.node_id) if event else None
    run = _needing(cloud, node) if node else None
    row = read_node(cloud, run.run_id, node.node_id) if run and node else None
    if event is None or node is None or run is None or row is None or row.released_at or row.state in OVER:
        return {"applied": False}
    applied = _warn(cloud, run, event) if event.warning else _lose(cloud, run, row, node)
    return {"applied": applied, "run_id": run.run_id}


handler = entry(step)


def _needing(cloud: Cloud, node: Node) -> RunRow | None:
    """Return the machine's run while it is neither over nor being ended."""
    item = cloud.runs.read(node.run_id, "run", "run")
    run = RunRow.model_validate(item) if item else None
    return None if run is None or run.tombstone_at or run.ended_at else run


def _lose(cloud: Cloud, run: RunRow, row: NodeRow, node: Node) -> bool:
    """Note that the machine failed, unless its agent said so before, and tell the task that waits for it."""
    if node.life not in ("stopping", "terminated"):
        return False
    changes = {"state": "failed", "failure": end_in_words(row, node.life, node.ended_because)}
    for _ in range(ATTEMPTS):
        if row.released_at or row.state in OVER:
            return False
        if row.state == "failed" or change_node(cloud, row, changes, {"state": row.state, "released_at": None}):
            tell_of_failure(cloud, run, row if row.state == "failed" else row.model_copy(update=changes))
            return True
        row = read_node(cloud, row.run_id, row.node_id) or row
    raise RuntimeError(f"node {row.node_id}: {ATTEMPTS} writers came between; the event is to be delivered again")


def _is_first_to_warn(cloud: Cloud, run: RunRow, event: InstanceEvent) -> bool:
    """Tell whether no other machine's warning was passed on just now: a whole fleet may be taken back at once.

    It is noted apart from the run's row, which functions of an older version may read.
    """
    now = cloud.clock.now()
    claim = {"at": to_text(now), "by": event.event_id}
    if cloud.runs.insert(run.run_id, "warning", "loss", claim):
        return True
    last = cloud.runs.read(run.run_id, "warning", "loss") or claim
    is_recent = now - from_text(last["at"]) < timedelta(seconds=NOTICE_SECONDS / 2)
    if is_recent and last["by"] != event.event_id:
        return False
    return cloud.runs.update(run.run_id, "warning", "loss", claim, last)


def _warn(cloud: Cloud, run: RunRow, event: InstanceEvent) -> bool:
    """Have every job of a run that trains save a checkpoint: what one machine holds, the others cannot do without."""
    if run.phases[-1].name != "training" or not run.training_token or not _is_first_to_warn(cloud, run, event):
        return False
    item = {"warning": event.warning, "is_applied": False}
    if not cloud.runs.insert(run.run_id, "event", event.event_id, item):
        known = cloud.runs.read(run.run_id, "event", event.event_id) or {}
        if known.get("is_applied"):
            return False
    notice = Notice(seconds_left=NOTICE_SECONDS, because=event.warning)
    tell_jobs(cloud, run, read_nodes(cloud, run.run_id), notice)
    publish_warning(cloud, run, notice)
    cloud.runs.update(run.run_id, "event", event.event_id, {"is_applied": True}, {})
    return True
