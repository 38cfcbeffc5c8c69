"""Event v1: what the agent says, how it is signed, and what a signature must cover to be believed."""

from __future__ import annotations

import hmac
import json
import uuid
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from headrace.domain.model import Contract, NodeId, RunId
from headrace.domain.names import name_uuid

SOURCE = "headrace.agent"
EVENT_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "headrace.agent/event/v1")
MAX_EVENT_BYTES = 16 * 1024

DetailType = Literal[
    "Node Ready",
    "Node Configured",
    "Dataset Progress",
    "Dataset Staged",
    "Dataset Failed",
    "Job Started",
    "Job Progress",
    "Results Progress",
    "Telemetry Sampled",
    "Job Done",
    "Job Failed",
    "Results Salvaged",
    "Node Leaving",
]


def _integer(value: object) -> object:
    """Refuse what only equals an integer: to Python, True and 1.0 are 1."""
    if type(value) is not int:
        raise ValueError("is not an integer")
    return value


class EventDetail(Contract):
    """The detail of an event.

    `body` holds text, integers, booleans, lists and objects: never a float, whose JSON text may change on its way and
    would break the signature. What each detail-type's body holds is in `headrace.domain.event_bodies`.
    """

    version: Annotated[Literal[1], BeforeValidator(_integer)]
    event_id: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    run_id: RunId
    attempt: Annotated[int, Field(ge=1, le=1000)]
    node_id: NodeId
    sequence: Annotated[int, Field(ge=1, le=10**12)]
    sent_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]
    body: dict[str, Any]
    hmac: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def event_id(run_id: str, attempt: int, node_id: str, sequence: int, detail_type: str) -> str:
    """Return the id that this event has however often it is sent."""
    return name_uuid(EVENT_NAMESPACE, f"{run_id}/{attempt}/{node_id}/{sequence}/{detail_type}")


def signature(detail_type: str, detail: dict[str, Any], key: bytes) -> str:
    """Return the HMAC-SHA-256, in hexadecimal, of the type and all of the detail but `hmac`.

    The text signed is `detail_type`, a newline, and the detail as JSON with sorted keys, no blanks and ASCII only.
    """
    signed = {name: value for name, value in detail.items() if name != "hmac"}
    text = detail_type + "\n" + json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hmac.digest(key, text.encode(), "sha256").hex()


def is_signed_by(detail_type: str, detail: dict[str, Any], key: bytes) -> bool:
    """Tell whether the detail carries the signature that this key gives, in constant time."""
    return hmac.compare_digest(signature(detail_type, detail, key), str(detail.get("hmac", "")))
