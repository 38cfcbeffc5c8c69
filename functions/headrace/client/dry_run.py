"""Plans a prepared job by the steps that a run takes, on a cloud that keeps everything in memory and starts nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from headrace.client.folder_files import list_folder
from headrace.client.opening import open_elsewhere, read_prices
from headrace.client.places import bucket_folder
from headrace.client.prepare import PreparedJob
from headrace.domain.access import BucketAccess
from headrace.domain.catalog import Market
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.instants import to_text
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.plan_answer import PlanAnswer
from headrace.domain.planning import plan_under
from headrace.domain.run import RunRow
from headrace.domain.what_if import Asked, what_if
from headrace.domain.why import WhyType, why
from headrace.handlers import inspect_dataset, plan_layout
from headrace.local.elsewhere import LocalElsewhere
from headrace.local.no_checks import NoChecks
from headrace.local.rules import Rules, read_rules
from headrace.local.settings import RUN_BUCKET, local_settings
from headrace.local.simulated.memory import MemoryObjects, MemoryRuns
from headrace.local.system import SystemClock
from headrace.ports import Cloud, Elsewhere, ObjectInfo, ObjectPage, Objects

RUN_ID = "dry-run"


def plan_without_running(prepared: PreparedJob, home: Path) -> Plan:
    """Return the plan that a run of this job would make; nothing is written and no machine is started.

    Raises DatasetUnusable, InfeasibleJob and BadSettings as a run would.
    """
    return DryRun(prepared, home, read_rules(home)).plan_of_a_run()


class DryRun:
    """A job whose data set is inspected and nothing more, to be planned in as many ways as are asked for."""

    def __init__(
        self,
        prepared: PreparedJob,
        home: Path,
        rules: Rules,
        remote: Objects | None = None,
        at_aws: Callable[[], Elsewhere] = open_elsewhere,
    ) -> None:
        """Inspect the data set. Raises DatasetUnusable.

        `remote` lists the buckets that are not on this machine, `at_aws` opens what reaches those of other accounts.
        """
        folders = {one.bucket: one.folder for one in prepared.served}
        self.job = prepared.job
        self._policy = rules.policy
        objects = _DryObjects(folders, home, remote)
        self._cloud = _dry_cloud(objects, _DryElsewhere(at_aws), rules)
        self._row = _dry_row(self._cloud, prepared)
        cursor: dict[str, Any] | None = None
        while cursor is None or not cursor["is_done"]:
            cursor = inspect_dataset.step({"run_id": RUN_ID, "cursor": cursor}, self._cloud)["cursor"]
        self.dataset = DatasetSummary.model_validate_json(self._read("dataset/summary.json"))

    def plan_of_a_run(self) -> Plan:
        """Return the plan by the step that a run takes. Raises InfeasibleJob also for what no run carries out yet."""
        plan_layout.step({"run_id": RUN_ID}, self._cloud)
        return Plan.model_validate_json(self._read("plan.json"))

    def answer(self, types: Sequence[str] = (), changes: Asked = ()) -> PlanAnswer:
        """Return the plan, why each of the types is in it or not, and the job with each combination of changes.

        Raises BadJob for changes that no job may have, InfeasibleJob when there is no plan.
        """
        made = self._plan_of(self.job)
        return PlanAnswer(
            plan=made,
            why=tuple(self._why(name) for name in types),
            what_if=what_if(self.job, changes, self._plan_of) if changes else (),
            notes=self._notes(),
        )

    def _plan_of(self, job: JobSpec) -> Plan:
        return plan_under(self._policy, job, self.dataset, self._market)

    def _why(self, name: str) -> WhyType:
        held = self._policy.job(self.job)
        return why(name, held, self.dataset, *self._policy.market(held, self._market(held.region)))

    def _market(self, region: str) -> Market:
        return Market(self._cloud.prices.catalog(region), self._cloud.prices.price_list(region))

    def _notes(self) -> tuple[str, ...]:
        try:
            self.plan_of_a_run()
        except InfeasibleJob as refusal:
            return (f"a run of this job would be refused: {refusal}",)
        return ()

    def _read(self, name: str) -> bytes:
        return self._cloud.objects.get(RUN_BUCKET, self._row.prefix + name)


def _dry_row(cloud: Cloud, prepared: PreparedJob) -> RunRow:
    now = to_text(SystemClock().now())
    row = RunRow(
        run_id=RUN_ID, job_name=prepared.job.name, execution_arn="", trigger="console", started_at=now, deadline_at=now
    )
    cloud.runs.insert(RUN_ID, "run", "run", row.model_dump(mode="json"))
    cloud.objects.put(RUN_BUCKET, row.prefix + "job.json", prepared.job.model_dump_json().encode())
    return row


def _dry_cloud(objects: Objects, elsewhere: Elsewhere, rules: Rules) -> Cloud:
    """Return a cloud with the ports that planning uses; any other is absent, so that using it fails at once."""
    absent = cast("Any", None)
    return Cloud(
        fleets=absent,
        nodes=absent,
        objects=objects,
        elsewhere=elsewhere,
        bus=absent,
        runs=MemoryRuns(),
        executions=absent,
        prices=read_prices(rules.overrides),
        clock=SystemClock(),
        entropy=absent,
        settings=replace(local_settings(), policy=rules.policy),
        checks=NoChecks(),
    )


class _DryObjects(MemoryObjects):
    """Buckets that are listed from folders, or at `remote`, and whose writes stay in memory."""

    def __init__(self, folders: Mapping[str, Path], home: Path, remote: Objects | None) -> None:
        super().__init__()
        self._folders = folders
        self._home = home
        self._remote = remote
        self._listed: dict[str, list[ObjectInfo]] = {}

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return one page of the folder's files, or of the remote bucket."""
        folder = self._folders.get(bucket) or bucket_folder(self._home, bucket)
        if self._remote is not None and not folder.is_dir():
            return self._remote.page(bucket, prefix, token, limit)
        if bucket not in self._listed:
            self._listed[bucket] = list_folder(folder)
        below = [one for one in self._listed[bucket] if one.key.startswith(prefix)]
        start = int(token or 0)
        end = start + limit
        return ObjectPage(tuple(below[start:end]), str(end) if end < len(below) else None)


class _DryElsewhere:
    """Buckets that are not ours: read where they are, and written nowhere."""

    def __init__(self, at_aws: Callable[[], Elsewhere]) -> None:
        self._at_aws = at_aws
        self._here = LocalElsewhere(os.environ)

    def objects(self, access: BucketAccess, run_id: str) -> Objects:
        """Return what reads the bucket, and keeps in memory what is written to it."""
        elsewhere = self._at_aws() if access.needs_aws else self._here
        return _ReadOnly(elsewhere.objects(access, run_id))


class _ReadOnly(MemoryObjects):
    """Another's objects to be listed; what is written stays in memory."""

    def __init__(self, objects: Objects) -> None:
        super().__init__()
        self._objects = objects

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """Return size and ETag."""
        return self._objects.head(bucket, key)

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return one page of the listing."""
        return self._objects.page(bucket, prefix, token, limit)
