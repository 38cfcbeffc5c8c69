"""How far a run is, added up over its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from headrace.domain.instants import seconds_between, to_text
from headrace.domain.plan import Role
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.salvage import saved_totals


@dataclass(frozen=True)
class Staging:
    """Files and bytes copied so far, what they go up to, and the rate at this moment."""

    files: int
    bytes: int
    total_files: int
    total_bytes: int
    rate_bytes_per_s: int

    @property
    def share(self) -> float:
        """Return how much is copied, from 0 to 1, by bytes or, when all files are empty, by files."""
        done, total = (self.bytes, self.total_bytes) if self.total_bytes else (self.files, self.total_files)
        return min(1.0, done / total) if total else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Return the seconds that are left at this rate, or None while nothing moves."""
        if self.rate_bytes_per_s <= 0:
            return None
        return max(0, self.total_bytes - self.bytes) / self.rate_bytes_per_s


@dataclass(frozen=True)
class Training:
    """What the command last said of itself."""

    node_id: str
    step: int | None
    total_steps: int | None
    metrics: dict[str, str]
    message: str | None


@dataclass(frozen=True)
class Saved:
    """Results that are safe so far."""

    files: int
    bytes: int


def current_nodes(nodes: Iterable[NodeRow], role: Role | None = None) -> tuple[NodeRow, ...]:
    """Return, in order, the newest machine at each place of the fleets: those replaced are left out."""
    newest: dict[tuple[str, int], NodeRow] = {}
    for node in sorted(nodes, key=lambda one: (one.attempt, one.launched_at)):
        if role in {None, node.role}:
            newest[node.role, node.index] = node
    return tuple(newest[place] for place in sorted(newest, key=lambda place: (place[0] == "compute", place[1])))


def staging_of(row: RunRow, nodes: Iterable[NodeRow]) -> Staging | None:
    """Return the progress of staging, or None when no node has reported any."""
    staged = [node.staged for node in current_nodes(nodes) if node.staged]
    if not staged:
        return None
    files, size, rate = (sum(one.get(field, 0) for one in staged) for field in ("files", "bytes", "rate_bytes_per_s"))
    return Staging(files, size, max(row.dataset_files, files), max(row.dataset_bytes, size), rate)


def training_of(nodes: Iterable[NodeRow]) -> Training | None:
    """Return what the first node that reports a step, a metric or a message last reported, or None."""
    for node in current_nodes(nodes, "compute"):
        if any(node.job.get(field) for field in ("step", "metrics", "message")):
            step, total, metrics, message = (node.job.get(f) for f in ("step", "total_steps", "metrics", "message"))
            return Training(node.node_id, step, total, dict(metrics or {}), message)
    return None


def saved_of(nodes: Iterable[NodeRow]) -> Saved | None:
    """Return how much of the results is saved, or None when nothing is."""
    current = current_nodes(nodes)
    is_any = any(node.results or node.salvaged or "manifest" in node.job for node in current)
    return Saved(*saved_totals(current)) if is_any else None


def usd_so_far(nodes: Iterable[NodeRow], now: datetime) -> float:
    """Return what the machines cost from launch to release, or to now, at their list prices."""
    instant = to_text(now)
    hours = (
        (max(0.0, seconds_between(node.launched_at, node.released_at or instant)) / 3600, node.usd_per_hour)
        for node in nodes
    )
    return sum(long * usd for long, usd in hours)


def phase_seconds(row: RunRow, now: datetime) -> tuple[tuple[str, float], ...]:
    """Return each phase the run entered and how long it lasted, the last one up to the end or now."""
    if not row.phases:
        return ()
    ends = [*(mark.at for mark in row.phases[1:]), row.ended_at or to_text(now)]
    spans = ((mark.name, seconds_between(mark.at, end)) for mark, end in zip(row.phases, ends, strict=True))
    return tuple((name, max(0.0, seconds)) for name, seconds in spans)
