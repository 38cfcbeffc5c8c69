"""The Python API for a deployed stack: submit a job, look at runs, stop one, read its receipt."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.client.aws_job import RemoteJob, prepare_for_aws
from headrace.client.handle import RunRefused, execution_name, this_person
from headrace.client.prepare import read_job
from headrace.client.run_table import RunTable
from headrace.domain.receipt import Receipt
from headrace.domain.run import RunStatus
from headrace.domain.triggers import parse_trigger, run_id_for
from headrace.ports import Cloud
from headrace.report.view import Snapshot

DEFAULT_STACK = "headrace"
LOOK_SECONDS = 5.0
RUNS_SHOWN = 50
"""A stack keeps the rows of all its runs, and each that is shown is read."""
JobGiven = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a job file, or a job as a mapping, whose relative paths then start from the current folder."""
Pause = Callable[[float], None]


class AwsClient:
    """Runs jobs in a deployed stack. Nothing of a run depends on this program once `submit` has returned.

        client = AwsClient(region="us-east-1")
        run = client.submit("job.yaml")
        print(run.wait().status)

    Every method raises CloudUnavailable, with what to set or to allow, when AWS refuses or cannot be reached.
    """

    def __init__(
        self,
        stack: str = DEFAULT_STACK,
        region: str | None = None,
        profile: str | None = None,
        *,
        cloud: Cloud | None = None,
        pause: Pause = time.sleep,
    ) -> None:
        self._cloud = cloud or _open(stack, region, profile)
        self._pause = pause
        self.table = RunTable(self._cloud.runs, lambda key: self._cloud.objects.get(self.run_bucket, key))

    @property
    def run_bucket(self) -> str:
        """Name of the bucket that keeps what runs keep."""
        return self._cloud.settings.run_bucket

    def prepare(self, job: JobGiven, results: str | None = None) -> RemoteJob:
        """Return the job with its code packed. Raises BadJob and BadPlace: on AWS data and results are in S3."""
        spec, base = read_job(job)
        return prepare_for_aws(spec, base, self.run_bucket, results)

    def submit(self, job: JobGiven | RemoteJob, results: str | None = None) -> AwsRun:
        """Upload the job's code and start a run; return at once. Errors as for `prepare`."""
        prepared = job if isinstance(job, RemoteJob) else self.prepare(job, results)
        with told_in_words():
            if prepared.code is not None:
                self._cloud.objects.put(self.run_bucket, prepared.code.key, prepared.code.packed)
            name = execution_name(prepared.job.name, self._cloud.clock.now(), self._cloud.entropy.token_hex(3))
            given = {**prepared.given, "client_token": name}
            arn = self._cloud.executions.start("training_run", name, given)
        return AwsRun(self, run_id_for(prepared.job.name, parse_trigger(given, arn).dedupe_key), arn)

    def runs(self, newest: int = RUNS_SHOWN) -> tuple[Snapshot, ...]:
        """Return so many runs as they stand, newest first."""
        with told_in_words():
            return tuple(self.table.snapshot(row.run_id) for row in islice(self.table.rows(), newest))

    def run(self, run_id: str | None = None) -> AwsRun:
        """Return the run whose id is given, or begins so, or the newest one. Raises UnknownRun."""
        with told_in_words():
            found = self.table.find(run_id)
            return AwsRun(self, found, self.table.snapshot(found).row.execution_arn)

    def is_open(self, execution_arn: str) -> bool:
        """Tell whether an execution still runs."""
        with told_in_words():
            return self._cloud.executions.is_running(execution_arn)

    def abort(self, run_id: str, execution_arn: str, by: str) -> None:
        """Note who stops a run that is not over, and stop its execution; the stack then releases everything of it."""
        with told_in_words():
            asked = {"stop_requested_by": by}
            self._cloud.runs.update(run_id, "run", "run", asked, {"stop_requested_by": None, "ended_at": None})
            self._cloud.executions.stop(execution_arn, f"stopped by {by}")

    def pause(self) -> None:
        """Wait until the next look is worth it."""
        self._pause(LOOK_SECONDS)


@dataclass(frozen=True)
class AwsRun:
    """One run of a stack; `id` is known before the run is recorded, which takes a few seconds."""

    client: AwsClient
    id: str
    execution_arn: str

    def snapshot(self) -> Snapshot | None:
        """Return the run and its machines as they stand, or None while it is not recorded."""
        with told_in_words():
            return self.client.table.snapshot(self.id) if self.client.table.row(self.id) else None

    def status(self) -> RunStatus:
        """Return RUNNING, SUCCEEDED, FAILED or STOPPED."""
        seen = self.snapshot()
        return "RUNNING" if seen is None else seen.row.status

    def stop(self, by: str | None = None) -> None:
        """Ask for the run's end; it is over once everything is released, which `wait` waits for."""
        self.client.abort(self.id, self.execution_arn, by or this_person())

    def changes(self) -> Iterator[Snapshot]:
        """Yield the run as it stands, every few seconds, until it is over.

        Raises RunRefused when its execution ended before the run was recorded.
        """
        while True:
            is_open = self.client.is_open(self.execution_arn)
            seen = self.snapshot()
            if seen is not None:
                yield seen
                if seen.row.ended_at is not None:
                    return
            elif not is_open:
                raise RunRefused(f"the run was refused; the execution {self.execution_arn} says why")
            self.client.pause()

    def wait(self) -> Receipt:
        """Wait until the run is over and return its receipt. Raises RunRefused."""
        for _ in self.changes():
            continue
        receipt = self.receipt()
        if receipt is None:
            raise RunRefused(f"run {self.id} ended without a receipt")
        return receipt

    def receipt(self) -> Receipt | None:
        """Return the receipt, or None while the run goes on."""
        with told_in_words():
            return self.client.table.receipt(self.id)


def _open(stack: str, region: str | None, profile: str | None) -> Cloud:
    from headrace.aws.laptop import open_stack  # noqa: PLC0415  # boto3 takes a while to import

    return open_stack(stack, region, profile)


@contextmanager
def told_in_words() -> Iterator[None]:
    """Raise CloudUnavailable, saying what to set or to allow, for what AWS answers within the block."""
    from headrace.aws.laptop import told_in_words as worded  # noqa: PLC0415  # boto3 takes a while to import

    with worded():
        yield
