"""A site whose runs follow a script: each look at a run moves it one step on, so nothing ever waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from headrace.domain.instants import to_text
from headrace.domain.receipt import Receipt
from headrace.domain.run import RunRow
from headrace.handlers.on_execution_status import pointer_id
from headrace.local.no_checks import NoChecks
from headrace.local.settings import RUN_BUCKET, local_settings
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.store import LocalRuns
from headrace.local.system import SystemClock, SystemEntropy
from headrace.ports import Cloud

Step = Callable[["FakeSite"], None]
ARN = "arn:aws:states:us-east-1:000000000000:execution:training_run:digits-1"
RUN_ID = "digits-0123456789"


class FakeSite:
    """Everything the client needs of a site; `script` is what happens, one step for each `is_over`."""

    def __init__(self, home: Path, script: Sequence[Step] = (), owner_process: str | None = None) -> None:
        self.home = home
        self.script = list(script)
        self.served: dict[str, tuple[Path, bool]] = {}
        self.given: dict[str, Any] = {}
        self.names: list[str] = []
        self.stops: list[str] = []
        self.recovered: list[str] = []
        self.opened = self.closed = 0
        self._owner_process = owner_process
        self._runs = LocalRuns(home / "runs.sqlite3")
        absent = cast("Any", None)
        self.cloud = Cloud(
            *(absent, absent, MemoryObjects(), absent, self._runs, absent, absent),
            SystemClock(),
            SystemEntropy(),
            local_settings(),
            NoChecks(),
            absent,
        )

    def __enter__(self) -> Self:
        self.opened += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed += 1

    def close(self) -> None:
        self._runs.close()

    def serve_folder(self, bucket: str, folder: Path, *, writable: bool) -> None:
        self.served[bucket] = (folder, writable)

    def start_run(self, given: Mapping[str, Any], name: str) -> str:
        self.given, self.names = dict(given), [*self.names, name]
        return ARN

    def stop_run(self, run_id: str, by: str) -> None:
        assert run_id == RUN_ID
        self.stops.append(by)
        self.change(stop_requested_by=by)
        self.script = [end("STOPPED", f"stopped by {by}")]

    def is_over(self, execution_arn: str) -> bool:
        assert execution_arn == ARN
        if self.script:
            self.script.pop(0)(self)
        return not self.script

    def failure_of(self, execution_arn: str) -> str | None:
        assert execution_arn == ARN
        return "BadJob: refused by the script"

    def recover(self, run_id: str) -> None:
        self.recovered.append(run_id)
        end("FAILED", "the run: ProcessDied: the process that drove the run died")(self)

    def change(self, **changes: Any) -> None:
        assert self._runs.update(RUN_ID, "run", "run", changes, {})

    def admit(self) -> None:
        now = to_text(SystemClock().now())
        row = RunRow(
            run_id=RUN_ID,
            job_name="digits",
            execution_arn=ARN,
            trigger="console",
            started_at=now,
            deadline_at=now,
            owner_process=self._owner_process,
        )
        assert self._runs.insert(RUN_ID, "run", "run", row.model_dump(mode="json"))
        self._runs.insert(pointer_id(ARN), "pointer", "run", {"run_id": RUN_ID})


def wait(_site: FakeSite) -> None:
    """Let one look pass without a change."""


def admit(site: FakeSite) -> None:
    """Record the run."""
    site.admit()


def enter(*phases: str) -> Step:
    """Return the step that enters the last of these phases."""

    def step(site: FakeSite) -> None:
        now = to_text(SystemClock().now())
        site.change(phases=[{"name": phase, "at": now} for phase in phases])

    return step


def end(status: str, reason: str | None = None) -> Step:
    """Return the step that reports the run, with a receipt in its bucket."""

    def step(site: FakeSite) -> None:
        now = to_text(SystemClock().now())
        receipt = Receipt.model_validate(
            {
                "run_id": RUN_ID,
                "job_name": "digits",
                "status": status,
                "reason": reason,
                "started_at": now,
                "ended_at": now,
                "job_done_at": None,
                "resources": (),
                "phases": (),
                "estimated_usd_low": None,
                "estimated_usd_high": None,
                "usd": 0.0,
                "results": f"{site.given['job']['results']}{RUN_ID}/" if site.given else None,
                "results_files": 0,
                "results_bytes": 0,
            }
        )
        key = f"runs/{RUN_ID}/receipt.json"
        file = site.home / "buckets" / RUN_BUCKET / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(receipt.model_dump_json())
        site.change(status=status, failure=reason, ended_at=now, report_key=key)

    return step
