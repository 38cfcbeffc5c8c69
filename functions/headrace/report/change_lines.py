"""A change in words, for people who read lines, and as JSON, for programs that do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from headrace.report.plain_text import plain
from headrace.report.quantities import bytes_text, clock_text, count_text, duration_text, rate_text
from headrace.report.view import Change, ChangeKind

Facts = Mapping[str, Any]
PHASE_WORDS = {
    "admitted": "the job is accepted",
    "inspecting": "reading what the data set holds",
    "planning": "choosing machines and layout",
    "waiting": "waiting until it is time to launch for the reservation",
    "storage": "starting the machines that hold the data",
    "staging": "copying the data set onto them",
    "compute": "starting the machines that train",
    "training": "the command runs",
    "salvaging": "storage nodes save what lost machines left on them",
    "collecting": "checking that the results arrived",
    "ending": "releasing every machine",
}


def line_of(change: Change) -> str:
    """Return the change as one line without control characters."""
    return plain(f"{clock_text(change.at)}  {change.kind:<9} {_WORDS[change.kind](change.facts)}")


def json_of(change: Change, run_id: str) -> str:
    """Return the change as one line of JSON: `kind`, `run_id`, `at`, then its facts."""
    return json.dumps({"kind": change.kind, "run_id": run_id, "at": change.at, **change.facts}, allow_nan=False)


def metrics_text(metrics: Mapping[str, str]) -> str:
    """Return metrics as `loss 0.31, accuracy 0.92`."""
    return ", ".join(f"{name} {value}" for name, value in metrics.items())


def _run(facts: Facts) -> str:
    return f"{facts['run_id']} started"


def _phase(facts: Facts) -> str:
    words = f"{facts['phase']}: {PHASE_WORDS.get(facts['phase'], 'begun')}"
    if "after" not in facts:
        return words
    return f"{words} ({facts['after']} took {duration_text(facts['after_seconds'])})"


def _node(facts: Facts) -> str:
    words = f"{facts['role']} {facts['index']} ({facts['node_id']}, {facts['instance_type']}) is {facts['state']}"
    return f"{words}: {facts['failure']}" if facts.get("failure") else words


def _staging(facts: Facts) -> str:
    files = f"{facts['files']:,} of {count_text(facts['total_files'], 'file')}"
    size = f"{bytes_text(facts['bytes'])} of {bytes_text(facts['total_bytes'])}"
    left = facts["total_bytes"] - facts["bytes"]
    rate = facts["rate_bytes_per_s"]
    if rate <= 0 or left <= 0:
        return f"{files}, {size}"
    return f"{files}, {size}, {rate_text(rate)}, {duration_text(left / rate)} left"


def _training(facts: Facts) -> str:
    parts = []
    if facts["step"] is not None:
        parts.append(f"step {facts['step']:,}" + (f" of {facts['total_steps']:,}" if facts["total_steps"] else ""))
    if facts["metrics"]:
        parts.append(metrics_text(facts["metrics"]))
    if facts["message"]:
        parts.append(facts["message"])
    return ", ".join(parts)


def _results(facts: Facts) -> str:
    return f"{count_text(facts['files'], 'file')}, {bytes_text(facts['bytes'])} saved"


def _stopping(facts: Facts) -> str:
    return f"a stop was asked for by {facts['by']}"


def _failure(facts: Facts) -> str:
    return str(facts["reason"])


def _ended(facts: Facts) -> str:
    return f"{facts['status']} after {duration_text(facts['seconds'])}"


_WORDS: dict[ChangeKind, Callable[[Facts], str]] = {
    "run": _run,
    "phase": _phase,
    "node": _node,
    "staging": _staging,
    "training": _training,
    "results": _results,
    "stopping": _stopping,
    "failure": _failure,
    "ended": _ended,
}
