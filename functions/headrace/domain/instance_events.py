"""What EC2 says of its own accord of a machine: that it ends, or that it will be taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SOURCE = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"
ENDING = frozenset({"shutting-down", "stopping", "stopped", "terminated"})
NOTICE_SECONDS = 120
"""From an interruption warning to the end; a recommendation comes earlier, or as late as that (aws-facts.md, 2)."""
WARNINGS = {
    INTERRUPTION: "the cloud takes the spot machine {} back",
    REBALANCE: "the spot machine {} is likely to be taken back soon",
}


class InstanceEvent(NamedTuple):
    """One machine, and the warning in words, which is empty when it is said to end already."""

    event_id: str
    node_id: str
    warning: str


def read_instance_event(envelope: Mapping[str, Any]) -> InstanceEvent | None:
    """Return what an EventBridge envelope says of a machine, or None when it says nothing that matters to a run."""
    detail = envelope.get("detail")
    if envelope.get("source") != SOURCE or not isinstance(detail, Mapping):
        return None
    kind, node_id = envelope.get("detail-type"), detail.get("instance-id")
    is_ending = kind == STATE and detail.get("state") in ENDING
    if not isinstance(node_id, str) or not node_id or not (is_ending or kind in WARNINGS):
        return None
    return InstanceEvent(str(envelope.get("id", "")), node_id, "" if is_ending else WARNINGS[str(kind)].format(node_id))
