"""Reading and writing the models that a run keeps in its bucket."""

from __future__ import annotations

from typing import TypeVar

from headrace.domain.job import JobSpec
from headrace.domain.model import Contract, Model
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow, RunRow
from headrace.ports import Cloud, Objects

C = TypeVar("C", bound=Contract)


def write_model(cloud: Cloud, row: RunRow, name: str, model: Model | Contract) -> str:
    """Write the model below the run's prefix; return its key."""
    key = row.prefix + name
    cloud.objects.put(cloud.settings.run_bucket, key, model.model_dump_json().encode())
    return key


def read_model(cloud: Cloud, row: RunRow, name: str, kind: type[C]) -> C:
    """Return the model that `write_model` wrote.

    Raises ObjectMissing when it was not written.
    """
    return kind.model_validate_json(cloud.objects.get(cloud.settings.run_bucket, row.prefix + name))


def read_plan(cloud: Cloud, row: RunRow) -> Plan:
    """Return the run's plan."""
    return read_model(cloud, row, "plan.json", Plan)


def read_job(cloud: Cloud, row: RunRow) -> JobSpec:
    """Return the run's job."""
    return JobSpec.model_validate_json(cloud.objects.get(cloud.settings.run_bucket, row.prefix + "job.json"))


def objects_at(cloud: Cloud, job: JobSpec, run_id: str, bucket: str) -> Objects:
    """Return the S3 that a bucket of the job is in: ours, or as its access says. Raises AccessDenied."""
    access = job.access_to(bucket)
    return cloud.objects if access is None else cloud.elsewhere.objects(access, run_id)


def node_file(cloud: Cloud, node_id: str, name: str) -> str:
    """Return the name, below the run's prefix, of an object that only this node reads besides us."""
    return f"nodes/{cloud.settings.node_folder_prefix}{node_id}/{name}"


def split_address(address: str) -> tuple[str, str]:
    """Return bucket and key or prefix of `s3://bucket/key`."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key


def results_place(job: JobSpec, node: NodeRow, places: int) -> tuple[str, str]:
    """Return bucket and prefix of one compute node's results.

    Of several, each saves below `node-<rank>/`, since two of them may write the same path.
    """
    bucket, prefix = split_address(results_address(job, node.run_id))
    return bucket, prefix + (f"node-{node.index}/" if places > 1 else "")


def results_address(job: JobSpec, run_id: str) -> str:
    """Return where the run's results go: a folder of its own below the place that the job names."""
    return f"{job.results.to.rstrip('/')}/{run_id}/"
