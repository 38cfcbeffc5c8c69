"""Each rule about machines at work can break: a ledger written by hand breaks exactly that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.domain.instants import to_text
from headrace.local.simulated.site import START
from tests.simulation.ledger import Ledger, MachineRecord
from tests.simulation.working import at_work, seconds_after_start

RUN, EXECUTION = "run-1", "arn:of:run-1"


def machine(node_id: str, role: str = "compute", **changes: Any) -> MachineRecord:
    """Return a machine that worked well from the 100th to the 500th second."""
    known = {
        "node_id": node_id,
        "run_id": RUN,
        "role": role,
        "instance_type": "c7i.large",
        "client_token": "token",
        "attempt": 1,
        "launched_s": 100.0,
        "deadline_s": 9000.0,
        "configured_s": 150.0,
        "started_s": 200.0 if role == "compute" else None,
        "asked_s": 500.0,
        "released_s": 500.0,
        "released_by": "TerminateNodes for run-1",
        "said": ["Node Ready", "Job Started", "Job Done"] if role == "compute" else ["Node Ready", "Dataset Staged"],
    }
    return MachineRecord(**{**known, **changes})


def breaches(
    *machines: MachineRecord, closed_s: float = 600.0, tombstone_s: float = 500.0, training: tuple[float, float]
) -> set[str]:
    """Return the names of the rules that break in a run of these machines."""
    ledger = Ledger({"storage": 1, "compute": 1})
    ledger.machines = {one.node_id: one for one in machines}
    ledger.closed[EXECUTION] = (closed_s, "SUCCEEDED")
    phases = [("training", training[0]), ("ending", training[1])]
    row = {
        "run_id": RUN,
        "execution_arn": EXECUTION,
        "tombstone_at": at(tombstone_s),
        "phases": [{"name": name, "at": at(when)} for name, when in phases],
        "max_seconds": 1000.0,
    }
    return {one.partition(":")[0] for one in at_work((), ledger, row)}


def at(seconds: float) -> str:
    return to_text(START.fromtimestamp(START.timestamp() + seconds, START.tzinfo))


def test_a_second_of_the_simulation_is_found_in_its_instant() -> None:
    assert seconds_after_start(at(12.5)) == 12.5


def test_a_good_run_breaks_nothing() -> None:
    assert breaches(machine("a", "storage"), machine("b"), training=(200, 480)) == set()


BROKEN: dict[str, Callable[[], set[str]]] = {
    "unnoticed": lambda: breaches(
        machine("a", "storage", lost_s=250.0, released_s=250.0, released_by="reclaimed"),
        machine("b", released_s=900.0),
        closed_s=900.0,
        training=(200, 480),
    ),
    "unfenced": lambda: breaches(
        machine("a", asked_s=110.0, released_s=400.0), machine("b", launched_s=120.0), training=(200, 480)
    ),
    "late launch": lambda: breaches(machine("b", launched_s=561.0, released_s=570.0), training=(200, 480)),
    "idle": lambda: breaches(
        machine("b", started_s=None, said=["Node Ready"], released_s=900.0), closed_s=900.0, training=(200, 801)
    ),
    "hours": lambda: breaches(machine("b", released_s=1900.0), closed_s=1900.0, training=(200, 1801)),
    "killed": lambda: breaches(machine("b", released_s=300.0, released_by="OnSweep for None"), training=(200, 480)),
    "never heard": lambda: breaches(
        machine("b", said=[], started_s=None, configured_s=None, released_s=1601.0), training=(200, 480)
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_breach_is_found_and_named(name: str) -> None:
    assert BROKEN[name]() == {name}


def test_a_machine_that_works_before_it_is_configured_is_found_at_once() -> None:
    ledger = Ledger({"storage": 1, "compute": 1})
    ledger.machines["a"] = machine("a", said=["Node Ready"])
    ledger.said("a", "Job Started")
    assert [one.partition(":")[0] for one in ledger.at_once] == ["unconfigured"]


def test_an_end_that_is_written_over_is_found_at_once_and_one_written_twice_is_none() -> None:
    ledger = Ledger({})
    ledger.reported(RUN, {"status": "SUCCEEDED", "report_key": "a"})
    ledger.reported(RUN, {"status": "SUCCEEDED", "report_key": "a"})
    assert ledger.at_once == []
    ledger.reported(RUN, {"status": "FAILED"})
    assert [one.partition(":")[0] for one in ledger.at_once] == ["two ends"]
