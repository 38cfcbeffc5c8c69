"""Event ids and signatures: event v1 as the control plane checks it, in this agent's own code."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any

SOURCE = "headrace.agent"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "headrace.agent/event/v1")


def event_id(run_id: str, attempt: int, node_id: str, sequence: int, detail_type: str) -> str:
    """Return the id that this event has however often it is sent."""
    return str(uuid.uuid5(NAMESPACE, f"{run_id}/{attempt}/{node_id}/{sequence}/{detail_type}"))


def sign(detail_type: str, detail: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """Return the detail with `hmac`: HMAC-SHA-256 over the type, a newline, and the rest as canonical JSON.

    Canonical means sorted keys, no blanks, ASCII only.
    """
    unsigned = {name: value for name, value in detail.items() if name != "hmac"}
    text = f"{detail_type}\n{json.dumps(unsigned, sort_keys=True, separators=(',', ':'), ensure_ascii=True)}"
    return {**unsigned, "hmac": hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()}
