"""Runs the agent so that it kills itself with SIGKILL at a failpoint: `python -m tests.chaos.failing_agent N NAME`."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from headrace_agent import copier, job_results, large_file, results, results_manifest, stage
from headrace_agent.__main__ import main
from tests.chaos.failpoints import FAILPOINTS, Failpoint

HIT_FILE = "HEADRACE_TEST_HIT_FILE"


def plant(point: Failpoint, at_call: int) -> None:
    """Replace the failpoint's function by one that kills this process before or after its `at_call`-th call."""
    *owner_path, name = point.function.split(".")
    owner: Any = importlib.import_module(f"headrace_agent.{owner_path[0]}")
    for step in owner_path[1:]:
        owner = getattr(owner, step)
    real: Callable[..., Any] = getattr(owner, name)
    calls = itertools.count(1)

    def failing(*given: Any, **options: Any) -> Any:
        is_due = next(calls) == at_call
        if is_due and point.when == "before":
            _die(point)
        answer = real(*given, **options)
        if is_due:
            _die(point)
        return answer

    setattr(owner, name, failing)


def make_small() -> None:
    """Let small data have all that large data has: spans, records, batches and parts of manifests, each several."""
    vars(copier)["RANGED_ABOVE_BYTES"], large_file.SPAN_BYTES = 100_000, 50_000
    stage.RECORD_SECONDS = stage.TICK_SECONDS = 0.02
    results.SETTLED_SECONDS, results.BATCH_FILES, results.SMALL_BYTES = 0.1, 4, 5_000
    job_results.LOOK_SECONDS = 0.05
    results_manifest.FILES_PER_PART = 10


def _die(point: Failpoint) -> None:
    with open(os.environ[HIT_FILE], "w") as file:  # noqa: PTH123 - no import may be needed now
        file.write(point.name)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    make_small()
    chosen = [point for point in FAILPOINTS if point.name == sys.argv[2]]
    for one in chosen:
        plant(one, int(sys.argv[1]))
    sys.argv = ["headrace-agent", "serve"]
    sys.exit(main())
