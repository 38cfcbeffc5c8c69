"""The Python API: the verbs of the command line, for notebooks and programs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Any, Self

from headrace.client import opening
from headrace.client.dry_run import plan_without_running
from headrace.client.handle import RunHandle, launch, serve
from headrace.client.opening import open_run_table
from headrace.client.places import home_folder
from headrace.client.prepare import PreparedJob, prepare, read_job
from headrace.client.recovery import recover_dead_runs
from headrace.client.site import OpenSite, Site
from headrace.domain.plan import Plan
from headrace.report.view import Snapshot

JobGiven = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a job file, or a job as a mapping, whose relative paths then start from the current folder."""


class Client:
    """Plans and runs jobs on this machine.

    Use it in a `with` block: leaving the block stops the runs that it started and waits until nothing is left of them.

        with Client() as client:
            run = client.start("job.yaml")
            print(run.wait().status, run.results_folder)
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        faults: Sequence[str] = (),
        open_site: OpenSite | None = None,
    ) -> None:
        self.home = home_folder(home)
        self._faults = tuple(faults)
        self._open_site = open_site or opening.open_local_site
        self._stack = ExitStack()
        self._site: Site | None = None
        self._handles: list[RunHandle] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def plan(self, job: JobGiven, results: str | None = None) -> Plan:
        """Return the plan of a run of the job; no machine is started.

        Raises BadJob, BadPlace, DatasetUnusable or InfeasibleJob, each with everything that is wrong.
        """
        return plan_without_running(self.prepare(job, results), self.home)

    def prepare(self, job: JobGiven, results: str | None = None) -> PreparedJob:
        """Return the job with addresses for this machine. Raises BadJob or BadPlace."""
        spec, base = read_job(job)
        return prepare(spec, base, self.home, results)

    def start(self, job: JobGiven, results: str | None = None) -> RunHandle:
        """Start a run and return it once it is recorded; errors as for `plan`, before anything is started."""
        prepared = self.prepare(job, results)
        plan_without_running(prepared, self.home)
        handle = self.launch(prepared)
        handle.await_id()
        return handle

    def launch(self, prepared: PreparedJob) -> RunHandle:
        """Start a run of a prepared job and return it at once, before it is recorded."""
        site = self._site or self._open_site(self.home, self._faults)
        serve(site, prepared, self.home)
        if self._site is None:
            self._site = self._stack.enter_context(site)
        handle = launch(site, prepared, self.home)
        self._handles.append(handle)
        return handle

    def runs(self) -> tuple[Snapshot, ...]:
        """Return all runs of this home as they stand, newest first."""
        with closing(open_run_table(self.home)) as table:
            return tuple(table.snapshot(row.run_id) for row in table.rows())

    def recover_dead_runs(self) -> tuple[str, ...]:
        """End runs whose driving process was killed, and return their ids."""
        with closing(open_run_table(self.home)) as table:
            return recover_dead_runs(table, self.home, self._open_site, warnings.warn)

    def close(self) -> None:
        """Stop the runs that this client started, wait until they are over, and close the machine's services."""
        with self._stack:
            for handle in self._handles:
                if not handle.is_over():
                    handle.stop("the program that started it, which ended")
                    handle.wait()
        self._handles.clear()
        self._site = None
