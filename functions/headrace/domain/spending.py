"""Holds a running job to its budget and its hours: what is used of each limit, and how long is left of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from headrace.domain.amounts import duration_text, usd_text
from headrace.domain.cost import micro_usd
from headrace.domain.instants import from_text
from headrace.domain.run import NodeRow, RunRow

WARN_AT = 0.9
"""The share of a limit at which a run is warned and asked to save a checkpoint."""
LEASE_SLACK_SECONDS = 300
"""What machines get beyond the instant of a limit, so that the control plane's own, gentler end comes first."""
_MICROS_PER_USD = 10**6


class Limit(NamedTuple):
    """One limit of a run; 1.0 `used` is all of it.

    `seconds_left` is at the present rate, 0 when the limit is reached, infinite when nothing uses it up.
    """

    error: Literal["BudgetExceeded", "DeadlineExceeded"]
    used: float
    seconds_left: float
    because: str


def limits_of(row: RunRow, nodes: Sequence[NodeRow], now: datetime, release_seconds: float) -> tuple[Limit, ...]:
    """Return every limit of the run as it stands now.

    Money counts what the machines have cost and what they will cost in the `release_seconds` that ending them takes.
    """
    found = [_whole_run(row, now)]
    if (training := _training(row, now)) is not None:
        found.append(training)
    if row.budget_usd is not None:
        found.append(_money(row.budget_usd, nodes, now, release_seconds))
    return tuple(found)


def tightest(limits: Sequence[Limit]) -> Limit:
    """Return the limit of which most is used; of equals, the first."""
    return max(limits, key=lambda one: one.used)


def seconds_left(limits: Sequence[Limit]) -> int:
    """Return the whole seconds until the first of the limits is reached at the present rate."""
    return int(min(one.seconds_left for one in limits))


def lease_ends_at(row: RunRow, limits: Sequence[Limit], now: datetime) -> datetime:
    """Return until when a machine of the run may stay: never past the deadline it was launched with."""
    return min(from_text(row.deadline_at), now + timedelta(seconds=seconds_left(limits) + LEASE_SLACK_SECONDS))


def spent_micro_usd(nodes: Sequence[NodeRow], now: datetime, release_seconds: float = 0.0) -> int:
    """Return what the machines cost until now, and the standing ones until they are released, in millionths."""
    return sum(micro_usd(_billed_seconds(node, now, release_seconds), node.usd_per_hour) for node in nodes)


def _billed_seconds(node: NodeRow, now: datetime, release_seconds: float) -> float:
    end = from_text(node.released_at) if node.released_at else now + timedelta(seconds=release_seconds)
    return max(0.0, (end - from_text(node.launched_at)).total_seconds())


def _money(budget_usd: float, nodes: Sequence[NodeRow], now: datetime, release_seconds: float) -> Limit:
    committed_usd = spent_micro_usd(nodes, now, release_seconds) / _MICROS_PER_USD
    usd_per_second = sum(node.usd_per_hour for node in nodes if not node.released_at) / 3600
    left_usd = max(0.0, budget_usd - committed_usd)
    return Limit(
        error="BudgetExceeded",
        used=committed_usd / budget_usd,
        seconds_left=left_usd / usd_per_second if usd_per_second else math.inf,
        because=(
            f"{usd_text(committed_usd)} of budget_usd {usd_text(budget_usd)} are spent, "
            "with what releasing the machines will cost"
        ),
    )


def _whole_run(row: RunRow, now: datetime) -> Limit:
    """Return the time limit; a run that waits for its reservation uses none of it."""
    start, end = from_text(row.launch_at or row.started_at), from_text(row.deadline_at)
    allowed_seconds = (end - start).total_seconds()
    return _time(max(0.0, (now - start).total_seconds()), allowed_seconds, "the run")


def _training(row: RunRow, now: datetime) -> Limit | None:
    began = next((mark.at for mark in reversed(row.phases) if mark.name == "training"), None)
    if began is None or row.max_seconds is None or row.phases[-1].name != "training":
        return None
    return _time((now - from_text(began)).total_seconds(), row.max_seconds, "the training")


def _time(elapsed_seconds: float, allowed_seconds: float, what: str) -> Limit:
    return Limit(
        error="DeadlineExceeded",
        used=elapsed_seconds / allowed_seconds if allowed_seconds > 0 else math.inf,
        seconds_left=max(0.0, allowed_seconds - elapsed_seconds),
        because=(
            f"{what} has lasted {duration_text(elapsed_seconds)} of the {duration_text(allowed_seconds)} "
            "it is allowed; raise max_hours for more"
        ),
    )
