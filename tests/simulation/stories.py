"""Tells what happened in a run so that a person can follow it."""

from __future__ import annotations

from tests.simulation.runs import Outcome


def story(outcome: Outcome) -> str:
    """Return the timeline, the faults that struck, how the runs ended, and what was wrong."""
    lines = [f"seed {outcome.seed}"]
    lines += [f"{seconds:10.1f} s  {actor:24.60} {what}" for seconds, actor, what in outcome.timeline]
    lines += ["faults that struck:", *(f"  {fault}" for fault in outcome.faults)]
    lines += [f"ended as: {', '.join(outcome.statuses) or 'nothing was admitted'}"]
    lines += [f"VIOLATION {one}" for one in outcome.violations] or ["no violation"]
    return "\n".join(lines) + "\n"
