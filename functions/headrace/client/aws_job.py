"""Makes a job ready for a stack on AWS: data and results are in S3 already, code is packed to be uploaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.client.pack import CodeArchive, pack_code
from headrace.client.places import BadPlace, resolve_place
from headrace.client.prepare import DEFAULT_RESULTS
from headrace.domain.access import BucketAccess
from headrace.domain.job import JobSpec, Results


@dataclass(frozen=True)
class RemoteJob:
    """A job whose addresses are all S3, and the code that must be uploaded to make that true."""

    job: JobSpec
    code: CodeArchive | None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the person should know before the run."""
        return tuple(f"not packed with the code: {one}" for one in self.code.left_out) if self.code else ()

    @property
    def given(self) -> dict[str, Any]:
        """Return the input of the execution."""
        return {"job": self.job.model_dump(mode="json", exclude_unset=True)}


def prepare_for_aws(job: JobSpec, base: Path, run_bucket: str, results: str | None = None) -> RemoteJob:
    """Return the job with its code at the address where it will be uploaded; `results` replaces what the job says.

    Raises BadPlace for data or results that are not in S3, naming all of them, and for code that cannot be packed.
    """
    wanted = job.results.to if results is None else results
    faults = [_fault("data", one.source) for one in job.data if not one.source.startswith("s3://")]
    if not wanted.startswith("s3://"):
        faults.append(_fault("results", "this machine" if wanted == DEFAULT_RESULTS else wanted))
    faults += [_local_secret(one) for one in job.accesses if not one.needs_aws]
    if faults:
        raise BadPlace("\n".join(faults))
    changes: dict[str, Any] = {} if results is None else {"results": Results(to=results)}
    code = _code(job, base)
    if code is not None:
        changes["code"] = f"s3://{run_bucket}/{code.key}"
    return RemoteJob(job.model_copy(update=changes), code)


def _fault(what: str, where: str) -> str:
    advice = {
        "data": "copy the files to a bucket (aws s3 sync) and name it as s3://bucket/prefix/",
        "results": "name a bucket as s3://bucket/prefix, in the job or with --results",
    }
    return f"{what}: {where} is not in S3, and machines on AWS reach nothing else; {advice[what]}"


def _local_secret(one: BucketAccess) -> str:
    return (
        f"credentials: {one.credentials} is on this machine, and machines on AWS read keys from Secrets Manager alone; "
        "write the secret's ARN"
    )


def _code(job: JobSpec, base: Path) -> CodeArchive | None:
    if job.code is None or job.code.startswith("s3://"):
        return None
    return pack_code(resolve_place(job.code, base))
