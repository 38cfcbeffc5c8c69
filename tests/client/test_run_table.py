"""Runs are found by the beginning of their id, and what is known of them is read from any terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.client.run_table import RunTable, from_home
from headrace.domain.errors import UnknownRun
from headrace.local.store import LocalRuns
from tests.client.fake_site import RUN_ID, FakeSite, end
from tests.report import samples


def known(home: Path, *run_ids: str) -> RunTable:
    runs = LocalRuns(None)
    for run_id in run_ids:
        runs.insert(run_id, "run", "run", samples.row(run_id=run_id).model_dump(mode="json"))
    return RunTable(runs, from_home(home), now=lambda: samples.clock(30))


@pytest.fixture
def table(home: Path) -> Iterator[RunTable]:
    with closing(known(home, "digits-aa11", "digits-aa22", "digits-bb33", "digits-bb33-2")) as table:
        yield table


def test_runs_are_listed_newest_first(table: RunTable) -> None:
    assert [row.run_id for row in table.rows()] == ["digits-bb33-2", "digits-bb33", "digits-aa22", "digits-aa11"]


@pytest.mark.parametrize(
    ("given", "found"),
    [(None, "digits-bb33-2"), ("digits-aa1", "digits-aa11"), ("digits-bb33", "digits-bb33")],
)
def test_a_run_is_found_by_its_id_its_beginning_or_as_the_newest(table: RunTable, given: str, found: str) -> None:
    assert table.find(given) == found


def test_an_ambiguous_beginning_lists_the_candidates(table: RunTable) -> None:
    with pytest.raises(UnknownRun, match="'digits-aa' begins 2 runs: digits-aa22, digits-aa11; write more"):
        table.find("digits-aa")


@pytest.mark.parametrize("given", ["zebra", "", "igits"])
def test_an_unknown_beginning_lists_the_newest_runs(table: RunTable, given: str) -> None:
    with pytest.raises(UnknownRun, match=f"no run begins with '{given}'; the newest are digits-bb33-2, digits-bb33, "):
        table.find(given)


def test_long_lists_of_candidates_are_cut(home: Path) -> None:
    many = known(home, *(f"digits-{number:02}" for number in range(20)))
    with closing(many) as table, pytest.raises(UnknownRun, match=r"begins 20 runs: digits-19, .*-12 and 12 more;"):
        table.find("digits")


def test_without_runs_the_way_to_one_is_said(home: Path) -> None:
    with closing(known(home)) as table, pytest.raises(UnknownRun, match="start one with `headrace run"):
        table.find(None)


def test_a_snapshot_has_the_run_and_its_machines_at_this_instant(table: RunTable) -> None:
    node = samples.node("compute", 0, run_id="digits-aa11")
    table.runs.insert("digits-aa11", "node", node.node_id, node.model_dump(mode="json"))
    snapshot = table.snapshot("digits-aa11")
    assert snapshot.nodes == (node,)
    assert snapshot.now == samples.clock(30)


def test_plan_and_receipt_are_read_from_the_run_s_bucket(scripted: Callable[[], FakeSite], home: Path) -> None:
    site = scripted()
    site.admit()
    table = RunTable(site.cloud.runs, from_home(home))
    assert (table.plan(RUN_ID), table.receipt(RUN_ID)) == (None, None)
    end("SUCCEEDED")(site)
    (home / "buckets" / "headrace-runs" / "runs" / RUN_ID / "plan.json").write_text(samples.plan().model_dump_json())
    assert table.plan(RUN_ID) == samples.plan()
    receipt = table.receipt(RUN_ID)
    assert receipt is not None
    assert receipt.run_id == RUN_ID
