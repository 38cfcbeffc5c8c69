"""Measures what lies between a job's end and the release of its machines: `python bench/release.py --runs 5`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from headrace.client import Client
from headrace.local import deliveries, machines
from headrace.local.fleets import LocalFleets
from headrace.ports import Cloud, Json

TRAINER = (
    "import os, time\ntime.sleep(1)\nopen(os.environ['HEADRACE_RESULTS'] + '/model.bin', 'wb').write(b'm' * 1000)\n"
)
JOBS: dict[str, dict[str, Any]] = {
    "storage fleet": {"storage": "fleet", "compute": {"instance_type": "c7i.large"}},
    "compute's own disks": {"storage": "local", "compute": {"instance_type": "c6gd.medium"}},
}
Step = Callable[[Json, Cloud], Json]


@dataclass
class Watch:
    """What one run did: when its job-done event was sent, and each invocation and terminate call after it, in s."""

    done_sent_at: float | None = None
    invoked: list[str] = field(default_factory=list)
    released_at: float | None = None

    def step(self, find: Callable[[str], Step]) -> Callable[[str], Step]:
        """Return `find`, whose handlers are noted; heartbeats and other telemetry lie on nobody's way."""

        def noting(function: str) -> Step:
            def call(request: Json, cloud: Cloud) -> Json:
                self._note(function, request)
                return find(function)(request, cloud)

            return call

        return noting

    def _note(self, function: str, request: Any) -> None:
        if function == "OnAgentEvent":
            if request["detail-type"] != "Job Done":
                return
            self.done_sent_at = datetime.fromisoformat(request["detail"]["sent_at"]).timestamp()
        if self.done_sent_at is not None and self.released_at is None:
            self.invoked.append(function)

    def terminate(self, call: Callable[..., tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
        """Return `call`, whose first accepted answer after the job-done event is noted."""

        def noting(fleets: LocalFleets, node_ids: Sequence[str]) -> tuple[str, ...]:
            accepted = call(fleets, node_ids)
            if accepted and self.done_sent_at is not None and self.released_at is None:
                self.released_at = time.time()
            return accepted

        return noting

    @property
    def seconds(self) -> float:
        """Return the seconds from the job-done event to the accepted terminate call."""
        if self.done_sent_at is None or self.released_at is None:
            raise RuntimeError("the run released nothing after a job-done event; `headrace status` shows why")
        return self.released_at - self.done_sent_at


def measure(home: Path, folder: Path, changes: dict[str, Any]) -> Watch:
    """Run one tiny job on real processes and return what was seen."""
    watch = Watch()
    with (
        patch.object(deliveries, "handler", watch.step(machines.handler)),
        patch.object(LocalFleets, "terminate", watch.terminate(LocalFleets.terminate)),
        Client(home) as client,
    ):
        receipt = client.start(write_job(folder, changes)).wait()
    if receipt.status != "SUCCEEDED":
        raise RuntimeError(f"the run is {receipt.status}: {receipt.reason}")
    return watch


def write_job(folder: Path, changes: dict[str, Any]) -> Path:
    """Write the tiny job with some fields changed; return its file."""
    for name, file, text in (("code", "train.py", TRAINER), ("data", "one.txt", "1")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_text(text)
    job = {
        "name": "release",
        "data": {"source": "data"},
        "results": str(folder / "results"),
        "code": "code",
        "command": ["python", "train.py"],
        "demand": {"read_bytes_per_s": 1000},
        "duration_hours": 0.1,
    }
    (folder / "job.yaml").write_text(json.dumps({**job, **changes}))
    return folder / "job.yaml"


def table(name: str, watches: Sequence[Watch]) -> str:
    """Return what the runs of one job came to, in lines."""
    seconds = [one.seconds for one in watches]
    ways = {" -> ".join(one.invoked) for one in watches}
    figures = f"median {median(seconds):.3f} s  min {min(seconds):.3f} s  max {max(seconds):.3f} s"
    most = max(len(one.invoked) for one in watches)
    return f"{name:<20} {len(watches)} runs  {figures}  at most {most} invocations: {' or '.join(sorted(ways))}"


def main() -> None:
    """Measure every job and print a table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    sys.stdout.write("from the job-done event (sent_at) to the accepted terminate call for compute\n")
    for name, changes in JOBS.items():
        with tempfile.TemporaryDirectory(prefix="headrace-bench-") as root:
            home = Path(root) / "home"
            watches = [measure(home, Path(root) / f"job{number}", changes) for number in range(runs)]
        sys.stdout.write(table(name, watches) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
