"""Noting each launch before it is asked for, so that machines are waited for which nobody was told of."""

from __future__ import annotations

from datetime import timedelta

from headrace.domain.instants import from_text, to_text
from headrace.domain.launch import LaunchRequest
from headrace.domain.presence import HIDDEN_SECONDS
from headrace.handlers._rows import ATTEMPTS
from headrace.ports import Cloud

KIND = "launch"


def note_asked(cloud: Cloud, request: LaunchRequest) -> None:
    """Note that the launch is about to be asked for, once more; from now on there may be machines of it.

    Raises RuntimeError when others note the same launch all the time.
    """
    item = {"asked_at": to_text(cloud.clock.now()), "is_adopted": False}
    if cloud.runs.insert(request.run_id, KIND, request.client_token, {**item, "asks": 1}):
        return
    for _ in range(ATTEMPTS):
        asks = (cloud.runs.read(request.run_id, KIND, request.client_token) or {}).get("asks")
        again = {**item, "asks": (asks or 0) + 1}
        if cloud.runs.update(request.run_id, KIND, request.client_token, again, {"asks": asks}):
            return
    raise RuntimeError(f"{ATTEMPTS} others noted the launch {request.client_token}; it is to be tried again")


def note_adopted(cloud: Cloud, request: LaunchRequest, *, is_whole: bool) -> None:
    """Note that every machine of the launch has a row.

    An answer that is not whole settles it only when nobody else asked: the other's answer may have been lost, and its
    machines may be hidden.
    """
    expecting = {} if is_whole else {"asks": 1}
    cloud.runs.update(request.run_id, KIND, request.client_token, {"is_adopted": True}, expecting)


def are_launches_settled(cloud: Cloud, run_id: str) -> bool:
    """Tell whether no machine can be hidden that a launch brought about but nobody adopted.

    Processes on one machine hide from no listing.
    """
    if cloud.settings.process_nodes:
        return True
    oldest = cloud.clock.now() - timedelta(seconds=HIDDEN_SECONDS)
    return all(item["is_adopted"] or from_text(item["asked_at"]) < oldest for item in cloud.runs.items(run_id, KIND))
