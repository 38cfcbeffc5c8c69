"""One run that this process drives: follow it, stop it, wait for its receipt."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from headrace.client.places import folder_of, remember_folder
from headrace.client.prepare import PreparedJob
from headrace.client.run_table import RunTable, from_home
from headrace.client.site import Site
from headrace.domain.errors import HeadraceError
from headrace.domain.receipt import Receipt
from headrace.domain.run import RunStatus
from headrace.handlers.on_execution_status import pointer_id
from headrace.report.view import Snapshot

LOOK_SECONDS = 0.2


class RunRefused(HeadraceError):
    """The run ended before it was recorded."""


class RunHandle:
    """A run of this process. Its methods may be called until the client that started it is closed."""

    def __init__(self, site: Site, execution_arn: str, table: RunTable, home: Path) -> None:
        self._site = site
        self._arn = execution_arn
        self._table = table
        self._home = home
        self._run_id: str | None = None

    @property
    def known_id(self) -> str | None:
        """Return the run's id, or None in the moment before the run is recorded."""
        if self._run_id is None:
            pointer = self._table.runs.read(pointer_id(self._arn), "pointer", "run")
            self._run_id = str(pointer["run_id"]) if pointer else None
        return self._run_id

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.await_id()

    def await_id(self) -> str:
        """Return the run's id once the run is recorded. Raises RunRefused when that never happens."""
        while (run_id := self.known_id) is None:
            if self._site.is_over(self._arn) and self.known_id is None:
                raise RunRefused(f"the run was refused: {self.failure}")
            time.sleep(LOOK_SECONDS)
        return run_id

    @property
    def failure(self) -> str | None:
        """Return `error: cause` of an execution that ended badly, even before there was a run."""
        return self._site.failure_of(self._arn)

    def snapshot(self) -> Snapshot:
        """Return the run and its machines as they stand."""
        return self._table.snapshot(self.id)

    def status(self) -> RunStatus:
        """Return RUNNING, SUCCEEDED, FAILED or STOPPED."""
        return self.snapshot().row.status

    def is_over(self) -> bool:
        """Tell whether nothing of the run goes on: it has reported, and no execution of it is open."""
        if not self._site.is_over(self._arn):
            return False
        row = self._table.row(self.known_id) if self.known_id else None
        return row is None or row.ended_at is not None

    def stop(self, by: str | None = None) -> None:
        """Ask for the run's end; it is over once everything is released, which `wait` waits for."""
        self._site.stop_run(self.id, by or this_person())

    def wait(self, timeout_seconds: float | None = None, on_look: Callable[[Snapshot], None] | None = None) -> Receipt:
        """Wait until the run is over and return its receipt; `on_look` is given each state seen meanwhile.

        Raises TimeoutError when it is not over in time (the run goes on), RunRefused when it ended without a receipt.
        """
        end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while not self.is_over():
            if on_look is not None:
                on_look(self.snapshot())
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"run {self.id} is not over after {timeout_seconds} s")
            time.sleep(LOOK_SECONDS)
        receipt = self.receipt()
        if receipt is None:
            raise RunRefused(f"run {self.id} ended without a receipt; `headrace status {self.id}` shows what is known")
        return receipt

    def receipt(self) -> Receipt | None:
        """Return the receipt, or None while the run goes on."""
        return self._table.receipt(self.id)

    @property
    def results_folder(self) -> Path | None:
        """Return the folder with the run's results, or None while there is no receipt or no folder."""
        receipt = self.receipt()
        return folder_of(self._home, receipt.results) if receipt and receipt.results else None


def serve(site: Site, prepared: PreparedJob, home: Path) -> None:
    """Make the job's folders buckets; the results folder is made if it is not there."""
    for one in prepared.served:
        if one.writable:
            one.folder.mkdir(parents=True, exist_ok=True)
        remember_folder(home, one)
        site.serve_folder(one.bucket, one.folder, writable=one.writable)


def launch(site: Site, prepared: PreparedJob, home: Path) -> RunHandle:
    """Upload the job's code and start its execution."""
    if prepared.code is not None:
        site.cloud.objects.put(site.cloud.settings.run_bucket, prepared.code.key, prepared.code.packed)
    name = execution_name(prepared.job.name, site.cloud.clock.now(), site.cloud.entropy.token_hex(3))
    return RunHandle(site, site.start_run(prepared.given, name), RunTable(site.cloud.runs, from_home(home)), home)


def execution_name(job_name: str, now: datetime, random: str) -> str:
    """Return `<job>-<UTC time>-<random>`, at most 63 characters of the 80 that Step Functions allows."""
    return f"{job_name}-{now:%Y%m%d-%H%M%S}-{random}"


def this_person() -> str:
    """Return the name under which a stop is noted."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"
