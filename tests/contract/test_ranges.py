"""The plan counts the requests that the agent makes."""

from __future__ import annotations

from headrace.domain import calibration
from headrace_agent import large_file


def test_the_plan_counts_ranges_as_the_agent_reads_them() -> None:
    assert calibration.RANGE_BYTES == large_file.SPAN_BYTES
    assert calibration.RANGED_ABOVE_BYTES == large_file.RANGED_ABOVE_BYTES
