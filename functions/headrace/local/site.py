"""One machine as a cloud: all that a run needs, from interpreter to S3 server, started and stopped together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Self

from headrace.aws.objects import S3Objects
from headrace.domain.errors import HeadraceError, UnknownRun
from headrace.domain.run import RunRow
from headrace.domain.settings import Settings
from headrace.local.bus import LocalBus
from headrace.local.control_plane import ControlPlane
from headrace.local.denied import DenyingObjects
from headrace.local.documents import LocalDocuments
from headrace.local.elsewhere import LocalElsewhere
from headrace.local.events_endpoint import EventsEndpoint
from headrace.local.faults import Faults
from headrace.local.fleets import LocalFleets
from headrace.local.journal import Journal
from headrace.local.marker import OWNER
from headrace.local.no_checks import NoChecks
from headrace.local.prices import LocalPrices
from headrace.local.process_nodes import AGENT, ProcessNodes
from headrace.local.recovery import recover_run
from headrace.local.rules import read_rules
from headrace.local.s3_endpoint import S3Endpoint
from headrace.local.s3_folders import is_bucket_name
from headrace.local.settings import REGION, child_environment, local_settings, node_environment, vm_settings
from headrace.local.store import LocalRuns
from headrace.local.system import SystemClock, SystemEntropy
from headrace.local.vm.nodes import SUPERVISOR, VmDocumentTargets, VmNodes
from headrace.local.vm.preparing import Preparing
from headrace.ports import Cloud, Objects

CLOSING_SECONDS = 120.0


class SiteNotOpen(HeadraceError):
    """A site is used outside of its `with` block."""


class LocalSite:
    """All that runs need on this machine, with its state below the folder `home`, for as long as its `with` block.

    Leaving the block stops the runs that were started here and are not over, and waits for their clean-up. With
    `vm_images`, the folder where guest images are kept, nodes are virtual machines; else they are processes.
    """

    def __init__(
        self,
        home: Path,
        faults: Faults | None = None,
        settings: Settings | None = None,
        agent: Sequence[str] = AGENT,
        vm_images: Path | None = None,
    ) -> None:
        self._home = home.absolute()
        self._faults = faults or Faults()
        self._vm_images = vm_images
        self._settings = settings or (vm_settings() if vm_images else local_settings())
        self._agent = SUPERVISOR if vm_images else agent
        self._entropy = SystemEntropy()
        self._serves: dict[str, str] = {}
        self._stack = ExitStack()
        self._cloud: Cloud | None = None
        self._plane: ControlPlane | None = None
        marks = {OWNER: self._settings.owner_process or ""}
        self._s3 = S3Endpoint(self._home / "logs", self._entropy, {**child_environment(os.environ), **marks})

    @property
    def cloud(self) -> Cloud:
        """The ports of this machine. Raises SiteNotOpen."""
        if self._cloud is None:
            raise SiteNotOpen("the site is not open; use it inside its `with` block")
        return self._cloud

    def serve_folder(self, bucket: str, folder: Path, *, writable: bool) -> None:
        """Make the folder a bucket, in place, for as long as the site lives; a folder not writable is only read.

        Raises ValueError for a folder that is not there or cannot be served. A denied bucket is not served at all.
        """
        self._serves[bucket] = "results" if writable else "data"
        if not self._is_denied(bucket):
            self._s3.serve(bucket, folder, writable=writable)

    def start_run(self, given: Mapping[str, Any], name: str) -> str:
        """Start an execution of `training_run` with that input and name; return its ARN."""
        return self._open_plane().start_run(given, name)

    def stop_run(self, run_id: str, by: str) -> None:
        """Ask for the end of a run, noting who did; doing so twice is the same as once.

        A run that another process drives is stopped by that process, which looks for the note twice a second.
        Raises UnknownRun.
        """
        if self.cloud.runs.read(run_id, "run", "run") is None:
            raise UnknownRun(f"no run is called {run_id!r}")
        self.cloud.runs.update(run_id, "run", "run", {"stop_requested_by": by}, {"stop_requested_by": None})
        self._open_plane().stop_requested_runs()

    def is_over(self, execution_arn: str) -> bool:
        """Tell whether the execution is closed, and the clean-up that its status started as well."""
        return self._open_plane().is_over(execution_arn)

    def failure_of(self, execution_arn: str) -> str | None:
        """Return `error: cause` of an execution that ended badly, for those that end before they are a run."""
        return self._open_plane().failure_of(execution_arn)

    def recover(self, run_id: str) -> None:
        """End a run whose driving process died: kill what carries its marks, decommission it, report it as failed.

        A run that has reported stays as it is. Raises UnknownRun, RunIsDriven, RecoveryFailed.
        """
        item = self.cloud.runs.read(run_id, "run", "run")
        if item is None:
            raise UnknownRun(f"no run is called {run_id!r}")
        recover_run(RunRow.model_validate(item), self._open_plane(), self._settings.owner_process)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._cloud = self._plane = None

    def _open(self, stack: ExitStack) -> None:
        # Runs keep signing keys below: only this user may read them.
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        rules = read_rules(self._home)
        clock = SystemClock()
        plane = ControlPlane(Journal(self._home / "logs", clock))
        stack.callback(plane.close)
        bus = LocalBus(plane.deliver, clock, self._entropy)
        objects = self._open_s3(stack)
        runs = LocalRuns(self._home / "runs.sqlite3")
        stack.callback(runs.close)
        events = EventsEndpoint(bus.accept, self._s3.access_key_id)
        stack.callback(events.stop)
        processes = self._open_nodes(stack, events.url)
        fleets, documents = self._open_fleets(stack, processes, clock)
        self._cloud = Cloud(
            fleets=fleets,
            nodes=documents,
            objects=objects,
            elsewhere=LocalElsewhere(os.environ),
            bus=bus,
            runs=runs,
            executions=plane.executions(bus.accept),
            prices=LocalPrices(rules.overrides),
            clock=clock,
            entropy=self._entropy,
            settings=replace(self._settings, policy=rules.policy),
            checks=NoChecks(),
        )
        self._plane = plane
        # Leaving goes the other way: runs end, no more events come, handlers finish, and only then the ports close.
        stack.callback(plane.drain)
        events.start()
        stack.callback(events.stop)
        plane.open(self._cloud)
        stack.callback(plane.end_runs, CLOSING_SECONDS)

    def _open_s3(self, stack: ExitStack) -> Objects:
        for folder in self._bucket_folders():
            self._s3.serve(folder.name, folder, writable=True)
        self._s3.start()
        stack.callback(self._s3.stop)
        objects = S3Objects(
            region=REGION,
            endpoint_url=self._s3.url,
            access_key_id=self._s3.access_key_id,
            secret_access_key=self._s3.secret_access_key,
        )
        stack.callback(objects.close)
        return DenyingObjects(objects, self._is_denied)

    def _open_nodes(self, stack: ExitStack, events_url: str) -> ProcessNodes:
        s3 = self._s3
        processes = ProcessNodes(
            self._home / "nodes",
            node_environment(os.environ, s3.access_key_id, s3.secret_access_key, s3.url, events_url),
            run_bucket=self._settings.run_bucket,
            stop_grace_seconds=self._settings.stop_grace_seconds,
            idle_lease_seconds=self._settings.idle_lease_seconds,
            agent=self._agent,
        )
        stack.callback(processes.close)
        return processes

    def _open_fleets(
        self, stack: ExitStack, processes: ProcessNodes, clock: SystemClock
    ) -> tuple[LocalFleets, LocalDocuments]:
        """Return the machines and the documents that run on them: processes, or guests that processes supervise."""
        table, random = self._home / "fleets.sqlite3", SystemRandom()
        if self._vm_images is None:
            fleets = LocalFleets(table, processes, clock, random, self._faults)
            documents = LocalDocuments(processes, fleets.list_nodes, self._entropy)
        else:
            guests = self._open_guests(stack, processes, self._vm_images)
            targets = VmDocumentTargets(processes)
            fleets = LocalFleets(table, guests, clock, random, self._faults, guests.address)
            documents = LocalDocuments(targets, fleets.list_nodes, self._entropy, command=targets.command)
        stack.callback(fleets.close)
        stack.callback(documents.close)
        return fleets, documents

    def _open_guests(self, stack: ExitStack, processes: ProcessNodes, images: Path) -> VmNodes:
        preparing = Preparing(images, self._home / "vm", lambda _text: None)
        preparing()  # what is missing is told now, and no launch has to wait for it
        environment = child_environment(os.environ)
        guests = VmNodes(processes, self._home / "vm", environment, preparing, LocalPrices().catalog)
        stack.callback(guests.close)
        return guests

    def _bucket_folders(self) -> list[Path]:
        buckets = self._home / "buckets"
        (buckets / self._settings.run_bucket).mkdir(parents=True, exist_ok=True)
        return [
            folder
            for folder in sorted(buckets.iterdir())
            if folder.is_dir() and is_bucket_name(folder.name) and not self._is_denied(folder.name)
        ]

    def _is_denied(self, bucket: str) -> bool:
        return self._faults.denies(bucket, self._serves.get(bucket))

    def _open_plane(self) -> ControlPlane:
        if self._plane is None:
            raise SiteNotOpen("the site is not open; use it inside its `with` block")
        return self._plane
