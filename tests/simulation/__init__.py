"""Whole runs under faults: `run_seed` runs one and judges it by what the cloud truly did."""

from tests.simulation.runs import Outcome, run_scenario, run_seed

__all__ = ["Outcome", "run_scenario", "run_seed"]
