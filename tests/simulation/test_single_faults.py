"""Every kind of fault, alone, at the first and the last call of every place: seen, and never against a rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.local.simulated.fault_table import TABLE
from tests.simulation.single import by_cell, is_bad, line_of, trials

Record = Callable[[str, object], None]


@pytest.mark.timeout(600)
def test_every_cell_is_struck_shows_a_consequence_and_breaks_no_rule(record_property: Record) -> None:
    found = list(trials(everywhere=False))
    cells = by_cell(found)
    record_property("figure", f"single faults: {len(cells)} cells, {len(found)} runs")
    bad = [f"{one.fault}: {one.consequence} {list(one.outcome.violations)}" for one in found if is_bad(one)]
    assert bad == []
    meant = {(row.kind, where) for row in TABLE for where in row.places}
    assert {cell for cell in meant if cell not in cells} == set(), "a cell of the table was struck in no base"
    assert all(line_of(cell, cells[cell]) for cell in cells)
