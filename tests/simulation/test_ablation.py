"""Each safety layer holds something back: without it, a certain fault breaks a rule that holds with it.

`event_id` is missing here: what it holds back, other layers hold back as well (a token takes its first answer only).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.local.simulated.fault_plan import Fault
from tests.simulation.ablation import LAYERS
from tests.simulation.runs import run_scenario
from tests.simulation.scenarios import good_scenario

UNHEARD = [f"lost@machine.{state}#{number}" for state in ("shutting-down", "terminated") for number in (1, 2, 3)]
"""The cloud says of none of the first three machines that it ended."""
CASES = [
    ("rule", "sweep", ["abort@control#1~100s"], "no end"),
    ("sweep", "", ["abort@control#1~100s", "lost@status.ABORTED#1"], "no end"),
    ("lease", "", ["terminate_denied@fleets.terminate#1"], "deadline"),
    ("catch", "rule,sweep", ["exit@machine#3=1"], "no end"),
    ("retry", "", ["not_run@invoke.TrainJob#1"], "not absorbed"),
    ("heartbeat", "sweep", ["crash@machine#3~105s"], "unnoticed"),
    ("client_token", "", ["timed_out@invoke.LaunchFleet#1"], "two fleets"),
    ("tombstone", "sweep", ["late@invoke.LaunchFleet#2~200s", "stop@control#1~150s"], "outlived"),
    ("second_look", "", ["stale@executions.is_running#1"], "not absorbed"),
    ("grace", "second_look", ["untagged@sweep#2~110s"], "killed"),
    (
        *("time_limits", "heartbeat,sweep"),
        *([*(f"crash@machine#{one}" for one in ("1~300s", "2~300s", "3~160s")), *UNHEARD], "no end"),
    ),
    ("confirm", "sweep", ["hidden@fleets.launch#1~300s", "stop@control#1~30s"], "outlived"),
]


def breaches(faults: list[str], without: frozenset[str]) -> set[str]:
    """Return the names of the invariants that break in a run that would else be good."""
    scenario = replace(good_scenario(), faults=tuple(map(Fault.parse, faults)))
    return {one.partition(":")[0] for one in run_scenario(scenario, without=without).violations}


@pytest.mark.parametrize(("layer", "also", "faults", "broken"), CASES)
def test_without_the_layer_a_rule_breaks_that_holds_with_it(
    layer: str, also: str, faults: list[str], broken: str
) -> None:
    others = frozenset(filter(None, also.split(",")))
    assert broken in breaches(faults, others | {layer})
    assert broken not in breaches(faults, others)
    assert breaches(faults, frozenset()) == set()


def test_a_layer_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no safety layers"):
        run_scenario(good_scenario(), without=frozenset({"luck"}))


def test_every_layer_has_words() -> None:
    assert all(LAYERS.values())
