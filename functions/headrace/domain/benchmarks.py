"""The published MLPerf Storage v1.0 results that plans are held against."""

from __future__ import annotations

import json

from headrace.domain.catalog import MIB
from headrace.domain.model import Bytes, Contract


class BenchmarkRow(Contract):
    """One published result: emulated accelerators of a kind, kept busy by a storage system."""

    division: str
    submitter: str
    system: str
    workload: str
    accelerator: str
    accelerators: int
    hosts: int
    busy_share: float
    """Accelerator utilisation as reported, mean of the runs."""
    read_mib_per_s: float
    files: int
    samples_per_file: int

    @property
    def read_bytes_per_s(self) -> float:
        """Measured reads of all accelerators together."""
        return self.read_mib_per_s * MIB


class LargestRun(Contract):
    """What the largest public run ran on."""

    submitter: str
    storage_type: str
    storage_count: int
    compute_type: str
    compute_count: int
    accelerators: int
    files: int
    file_bytes: Bytes


class Benchmarks(Contract):
    """All published rows, with where they come from."""

    source: str
    licence: str
    rows: tuple[BenchmarkRow, ...]
    largest: LargestRun

    @property
    def largest_rows(self) -> tuple[BenchmarkRow, ...]:
        """The rows of the largest run, slowest first."""
        own = (
            one
            for one in self.rows
            if (one.submitter, one.accelerators) == (self.largest.submitter, self.largest.accelerators)
        )
        return tuple(sorted(own, key=lambda one: one.read_mib_per_s))


def parse_benchmarks(text: str) -> Benchmarks:
    """Return the published rows from the packaged `benchmarks.json`."""
    return Benchmarks.model_validate(json.loads(text))
