"""Replays published results: the demand from first principles beside what was measured, and what it would take."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from headrace.domain.benchmarks import BenchmarkRow, Benchmarks
from headrace.domain.catalog import Catalog, PriceList, Workload
from headrace.domain.largest_run import LargestRunReplay, replay_largest_run
from headrace.domain.model import Contract
from headrace.domain.replay_plans import PlannedCount, planned_counts

OUTLIER = 0.10
"""An error above this share is listed by name."""


class ReplayedRow(Contract):
    """One published row beside the demand that its workload's definition gives."""

    submitter: str
    system: str
    workload: str
    accelerator: str
    accelerators: int
    busy_share: float
    derived_bytes_per_s: float
    measured_bytes_per_s: float

    @property
    def error(self) -> float:
        """By what share of it the derived demand differs from the measured reads; positive when it is greater."""
        return self.derived_bytes_per_s / self.measured_bytes_per_s - 1


class WorkloadError(Contract):
    """How well first principles agree with all rows of one workload."""

    workload: str
    rows: int
    median_error: float
    """Median of the absolute errors, as a share."""
    worst_error: float


class Replay(Contract):
    """Everything that a replay finds."""

    source: str
    licence: str
    rows: tuple[ReplayedRow, ...]
    errors: tuple[WorkloadError, ...]
    outliers: tuple[ReplayedRow, ...]
    plans: tuple[PlannedCount, ...]
    largest: LargestRunReplay


def replay(benchmarks: Benchmarks, catalog: Catalog, prices: PriceList) -> Replay:
    """Return the replay of all published rows on the machines of one region."""
    rows = tuple(_replayed(row, catalog.workloads) for row in benchmarks.rows)
    return Replay(
        source=benchmarks.source,
        licence=benchmarks.licence,
        rows=rows,
        errors=tuple(_errors(rows)),
        outliers=tuple(one for one in rows if abs(one.error) > OUTLIER),
        plans=planned_counts(benchmarks, catalog, prices),
        largest=replay_largest_run(benchmarks, catalog, prices),
    )


def _replayed(row: BenchmarkRow, workloads: tuple[Workload, ...]) -> ReplayedRow:
    """Return the row with sample bytes x samples/s at full use x the share of time that the accelerators were busy."""
    rule = next(one for one in workloads if (one.workload, one.accelerator) == (row.workload, row.accelerator))
    each = rule.sample_bytes * rule.samples_per_s_at_full_use * row.busy_share
    return ReplayedRow(
        submitter=row.submitter,
        system=row.system,
        workload=row.workload,
        accelerator=row.accelerator,
        accelerators=row.accelerators,
        busy_share=row.busy_share,
        derived_bytes_per_s=round(each * row.accelerators),
        measured_bytes_per_s=round(row.read_bytes_per_s),
    )


def _errors(rows: tuple[ReplayedRow, ...]) -> Iterator[WorkloadError]:
    for workload in sorted({one.workload for one in rows}):
        errors = [abs(one.error) for one in rows if one.workload == workload]
        yield WorkloadError(
            workload=workload,
            rows=len(errors),
            median_error=round(median(errors), 4),
            worst_error=round(max(errors), 4),
        )
