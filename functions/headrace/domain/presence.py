"""Whether a machine is gone, judged by what a listing shows of it and by what a listing may not show yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.domain.instants import from_text
from headrace.domain.run import NodeRow

HIDDEN_SECONDS = 600.0
"""A new machine may be unknown to every call for about 5 minutes (aws-facts.md section 2); this is twice that.

Ended ones are listed for about an hour, so an older machine that no listing shows is gone.
"""


def is_gone(node: NodeRow, life: str | None, now: datetime) -> bool:
    """Tell whether the machine is terminated; `life` is what the listing says of it, None where it says nothing."""
    if life is not None:
        return life == "terminated"
    return now - from_text(node.launched_at) > timedelta(seconds=HIDDEN_SECONDS)
