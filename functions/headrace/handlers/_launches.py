"""Noting each launch before it is asked for, so that machines are waited for which nobody was told of."""

from __future__ import annotations

from datetime import timedelta

from headrace.domain.instants import from_text, to_text
from headrace.domain.launch import LaunchRequest
from headrace.domain.presence import HIDDEN_SECONDS
from headrace.ports import Cloud

KIND = "launch"


def note_asked(cloud: Cloud, request: LaunchRequest) -> None:
    """Note that the launch is about to be asked for; from now on there may be machines of it."""
    item = {"asked_at": to_text(cloud.clock.now()), "is_adopted": False}
    if not cloud.runs.insert(request.run_id, KIND, request.client_token, item):
        cloud.runs.update(request.run_id, KIND, request.client_token, item, {})


def note_adopted(cloud: Cloud, request: LaunchRequest) -> None:
    """Note that every machine of the launch has a row."""
    cloud.runs.update(request.run_id, KIND, request.client_token, {"is_adopted": True}, {})


def are_launches_settled(cloud: Cloud, run_id: str) -> bool:
    """Tell whether no machine can be hidden that a launch brought about but nobody adopted.

    Processes on one machine hide from no listing.
    """
    if cloud.settings.process_nodes:
        return True
    oldest = cloud.clock.now() - timedelta(seconds=HIDDEN_SECONDS)
    return all(item["is_adopted"] or from_text(item["asked_at"]) < oldest for item in cloud.runs.items(run_id, KIND))
