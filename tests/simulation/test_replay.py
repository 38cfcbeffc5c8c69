"""A seed is a run: the same log byte for byte, in any process; a failing one is made small and told as a story."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.local.simulated.fault_plan import Fault
from tests.simulation.__main__ import main
from tests.simulation.runs import run_scenario, run_seed
from tests.simulation.scenarios import good_scenario, scenario_of
from tests.simulation.shrinking import fewest_that, shrunk
from tests.simulation.speed import parsed_once
from tests.simulation.stories import story

CHECKOUT = Path(__file__).parents[2]
DIGEST = """
import hashlib, sys
from tests.simulation.runs import run_seed
lines = []
run_seed(int(sys.argv[1]), log=lines.append)
print(hashlib.sha256("\\n".join(lines).encode()).hexdigest())
"""


def digest_of(seed: int) -> str:
    """Return the hash of the seed's whole log."""
    lines: list[str] = []
    run_seed(seed, log=lines.append)
    assert len(lines) > 100
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_one_seed_gives_one_log_in_any_process_and_for_any_order_of_hashes(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST, "12"]
    other = subprocess.run(command, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest_of(12)


def test_parsing_each_text_once_changes_nothing_of_what_happens() -> None:
    plain = [run_seed(seed).timeline for seed in range(20)]
    with parsed_once():
        assert [run_seed(seed).timeline for seed in range(20)] == plain


def test_no_log_holds_a_signing_key() -> None:
    """The log holds the whole history of every execution: inputs, outputs, variables, errors and causes."""
    for seed in range(12):
        lines: list[str] = []
        keys = run_seed(seed, log=lines.append).keys
        text = "\n".join(lines)
        assert [key for key in keys if key in text] == []
    assert keys, "the last seed gave out no key, so nothing was searched for"


def test_a_fault_is_read_back_from_its_text() -> None:
    faults = [fault for seed in range(40) for fault in scenario_of(seed).faults]
    assert len(faults) > 40
    assert [Fault.parse(str(fault)) for fault in faults] == faults


def test_the_fewest_faults_are_found() -> None:
    faults = [Fault("kind", "place", nth) for nth in range(1, 20)]
    needed = {faults[3], faults[11]}
    assert set(fewest_that(faults, needed.issubset)) == needed


def test_a_violation_is_made_small_and_told() -> None:
    """With the sweep and the rule away, a stopped run is ended by nobody."""
    noise = [Fault("slow", "objects.get", 5, seconds=5.0), Fault("doubled", "event.Node Ready", 1, 2)]
    scenario = replace(good_scenario(), faults=(*noise, Fault("abort", "control", seconds=100.0)))
    without = frozenset({"rule", "sweep", "lease"})
    outcome = run_scenario(scenario, without=without)
    assert any(one.startswith("no end") for one in outcome.violations)
    small = shrunk(scenario, outcome, without)
    assert [str(fault) for fault in small.faults] == ["abort@control#1~100s"]
    told = story(small)
    assert "VIOLATION no end" in told
    assert "launched as storage" in told


def test_the_command_replays_a_seed_and_says_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["13"]) == 0
    assert "no violation" in capsys.readouterr().out
    assert main(["13", "abort@control#1~100s", "--without", "rule,sweep,lease"]) == 1
    assert "VIOLATION" in capsys.readouterr().out
