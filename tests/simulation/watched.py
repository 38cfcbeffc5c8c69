"""The run table of a simulated cloud, which tells the ledger of every change to how a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulation.ledger import Ledger
from tests.simulation.speed import RememberingRuns

END = ("status", "report_key", "ended_at")


class WatchedRuns(RememberingRuns):
    """The run table under the eyes of the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def update(
        self, run_id: str, kind: str, name: str, changes: Mapping[str, Any], expecting: Mapping[str, Any]
    ) -> bool:
        is_done = super().update(run_id, kind, name, changes, expecting)
        if is_done and kind == "run" and (end := {field: changes[field] for field in END if field in changes}):
            self._ledger.reported(run_id, end)
        return is_done
