"""A receipt names everything that was created, and its bill is the sum of its parts."""

from __future__ import annotations

from headrace.domain.receipts import Ending, write_receipt
from headrace.domain.run import PhaseMark
from tests.domain.rows import NOON, node_row, run_row

HALF_PAST = "2026-01-01T12:30:00.000Z"
ONE = "2026-01-01T13:00:00.000Z"
FAILED = Ending("FAILED", "TrainJob: JobFailed: exit code 1", ONE, None)


def test_a_node_is_billed_from_its_launch_to_its_release() -> None:
    nodes = [node_row("a", released_at=HALF_PAST), node_row("b", usd_per_hour=3.0)]
    receipt = write_receipt(run_row(), nodes, None, FAILED)
    assert [one.usd for one in receipt.resources if one.kind == "node"] == [0.5, 3.0]
    assert receipt.usd == 3.5


def test_every_node_and_every_key_is_on_it_released_or_not() -> None:
    nodes = [node_row("a", released_at=HALF_PAST, key_deleted_at=ONE), node_row("b")]
    receipt = write_receipt(run_row(job_done_at=NOON), nodes, None, FAILED)
    assert [(one.kind, one.resource_id, one.seconds_after_job_done) for one in receipt.resources] == [
        ("node", "a", 1800.0),
        ("node", "b", None),
        ("key", "key of a", 3600.0),
        ("key", "key of b", None),
    ]


def test_phases_last_until_the_next_begins() -> None:
    phases = (PhaseMark(name="admitted", at=NOON), PhaseMark(name="storage", at=HALF_PAST))
    receipt = write_receipt(run_row(phases=phases), [], None, FAILED)
    assert [(one.name, one.seconds) for one in receipt.phases] == [("admitted", 1800.0), ("storage", 1800.0)]


def test_a_machine_released_before_it_was_launched_by_a_skewed_clock_costs_nothing() -> None:
    receipt = write_receipt(run_row(), [node_row(released_at="2026-01-01T11:59:59.000Z")], None, FAILED)
    assert receipt.usd == 0.0
