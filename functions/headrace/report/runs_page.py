"""All runs, one line each, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from headrace.domain.instants import seconds_between, to_text
from headrace.report.cells import cell, status_cell, table
from headrace.report.progress import usd_so_far
from headrace.report.quantities import duration_text, usd_text
from headrace.report.view import Snapshot

NO_RUNS = "no runs yet; `headrace init` gives you an example to run"


def runs_page(runs: Sequence[Snapshot]) -> RenderableType:
    """Return the table of runs, or a sentence when there is none."""
    if not runs:
        return cell(NO_RUNS)
    made = table("run", "status", "phase", "age", "took", "cost so far", right=("age", "took", "cost so far"))
    for run in runs:
        row, now = run.row, to_text(run.now)
        age = max(0.0, seconds_between(row.started_at, now))
        took = max(0.0, seconds_between(row.started_at, row.ended_at or now))
        cells = (phase_of(run), duration_text(age), duration_text(took), usd_text(usd_so_far(run.nodes, run.now)))
        made.add_row(cell(row.run_id), status_cell(row.status), *(cell(text) for text in cells))
    return made


def phase_of(run: Snapshot) -> str:
    """Return the phase the run is in or ended in."""
    return run.row.phases[-1].name if run.row.phases else "admitted"
