"""Reads what is known of runs: their rows, plans and receipts. Works from any terminal, while a run lives or after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from headrace.client.places import bucket_folder
from headrace.domain.errors import ObjectMissing, UnknownRun
from headrace.domain.model import Contract
from headrace.domain.plan import Plan
from headrace.domain.receipt import Receipt
from headrace.domain.run import NodeRow, RunRow
from headrace.local.settings import RUN_BUCKET
from headrace.local.store import LocalRuns
from headrace.ports import Runs
from headrace.report.view import Snapshot

CANDIDATES_SHOWN = 8
C = TypeVar("C", bound=Contract)


def _now() -> datetime:
    return datetime.now(UTC)


ReadObject = Callable[[str], bytes]


def from_home(home: Path) -> ReadObject:
    """Return what reads objects of the run bucket that the home folder keeps."""
    bucket = bucket_folder(home, RUN_BUCKET)
    return lambda key: (bucket / key).read_bytes()


class RunTable:
    """The runs of one home folder, or of one stack; `read` returns an object of the run bucket.

    It raises FileNotFoundError or ObjectMissing for one that is not there.
    """

    def __init__(self, runs: Runs, read: ReadObject, now: Callable[[], datetime] = _now) -> None:
        self.runs = runs
        self._read_object = read
        self._now = now

    def close(self) -> None:
        """Close the table, when it is one that can be closed."""
        if isinstance(self.runs, LocalRuns):
            self.runs.close()

    def row(self, run_id: str) -> RunRow | None:
        """Return the run's row, or None when there is none."""
        item = self.runs.read(run_id, "run", "run")
        return None if item is None else RunRow.model_validate(item)

    def rows(self) -> Iterator[RunRow]:
        """Yield the rows of all runs, newest first."""
        for run_id in self.runs.run_ids():
            row = self.row(run_id)
            if row is not None:
                yield row

    def snapshot(self, run_id: str) -> Snapshot:
        """Return the run as it stands. Raises UnknownRun."""
        row = self.row(run_id)
        if row is None:
            raise UnknownRun(f"no run is called {run_id!r}")
        nodes = tuple(NodeRow.model_validate(item) for item in self.runs.items(run_id, "node"))
        return Snapshot(row, nodes, self._now())

    def find(self, given: str | None) -> str:
        """Return the id that `given` begins, or is, or the newest run's when it is None.

        Raises UnknownRun, listing candidates, when no run or more than one fits.
        """
        known = [row.run_id for row in self.rows()]
        if not known:
            raise UnknownRun("there are no runs yet; start one with `headrace run JOB.yaml`")
        if given is None:
            return known[0]
        if given in known:
            return given
        fitting = [run_id for run_id in known if given and run_id.startswith(given)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise UnknownRun(f"{given!r} begins {len(fitting)} runs: {_shown(fitting)}; write more of the one you mean")
        raise UnknownRun(f"no run begins with {given!r}; the newest are {_shown(known)}")

    def plan(self, run_id: str) -> Plan | None:
        """Return the run's plan, or None while there is none."""
        return self._read(f"runs/{run_id}/plan.json", Plan)

    def receipt(self, run_id: str) -> Receipt | None:
        """Return the run's receipt, or None while there is none."""
        row = self.row(run_id)
        return self._read(row.report_key, Receipt) if row and row.report_key else None

    def _read(self, key: str, kind: type[C]) -> C | None:
        try:
            return kind.model_validate_json(self._read_object(key))
        except (FileNotFoundError, ObjectMissing):
            return None


def _shown(run_ids: list[str]) -> str:
    more = f" and {len(run_ids) - CANDIDATES_SHOWN} more" if len(run_ids) > CANDIDATES_SHOWN else ""
    return ", ".join(run_ids[:CANDIDATES_SHOWN]) + more
