"""Makes a job ready for this machine: folders become buckets, archives are unpacked, code is packed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from headrace.client.folder_files import walk_files
from headrace.client.pack import CodeArchive, pack_code
from headrace.client.places import (
    BadPlace,
    ServedFolder,
    bucket_folder,
    bucket_name,
    refuse_overlap,
    resolve_place,
)
from headrace.client.unpack import ARCHIVE_ENDINGS, is_archive, unpack_once
from headrace.domain.access import Access, bucket_access
from headrace.domain.errors import BadJob
from headrace.domain.job import DataInput, JobSpec, Results
from headrace.domain.job_text import job_from_mapping, parse_job
from headrace.local.settings import RUN_BUCKET

JOB_BYTES_MAX = 64 * 1024
DEFAULT_RESULTS = "local"
DEFAULT_RESULTS_FOLDER = "headrace-results"


A = TypeVar("A", bound=Access)


@dataclass(frozen=True)
class PreparedJob:
    """A job whose addresses are all S3, and what must be served and uploaded to make them true."""

    job: JobSpec
    served: tuple[ServedFolder, ...]
    code: CodeArchive | None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the person should know before the run."""
        return tuple(f"not packed with the code: {one}" for one in self.code.left_out) if self.code else ()

    @property
    def given(self) -> dict[str, Any]:
        """Return the input of the execution."""
        return {"job": self.job.model_dump(mode="json", exclude_unset=True)}


def read_job(given: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[JobSpec, Path]:
    """Return the job and the folder that its relative paths start from: the file's own, or the current one.

    Raises BadJob for a file that cannot be read and for every fault in it.
    """
    if isinstance(given, Mapping):
        return job_from_mapping(given), Path.cwd()
    path = Path(given).expanduser()
    try:
        with path.open("rb") as file:
            body = file.read(JOB_BYTES_MAX + 1)
        if len(body) > JOB_BYTES_MAX:
            raise BadJob((f"{path} is larger than {JOB_BYTES_MAX // 1024} KiB, so it is no job description",))
        return parse_job(body.decode("utf-8")), path.resolve().parent
    except IsADirectoryError:
        raise BadJob((f"{path} is a folder; name the job file in it, such as {path / 'job.yaml'}",)) from None
    except OSError as error:
        raise BadJob((f"{path} cannot be read: {error.strerror}",)) from None
    except UnicodeDecodeError as error:
        raise BadJob((f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8",)) from None


def prepare(
    job: JobSpec, base: Path, home: Path, results: str | None = None, *, is_remote_allowed: bool = False
) -> PreparedJob:
    """Return the job with S3 addresses in place of local paths; `results` replaces what the job says.

    Raises BadPlace for what is missing, empty, of the wrong kind, or would loop. Nothing is started; archives of data
    are unpacked below `home`. With `is_remote_allowed`, which is for planning, buckets may be elsewhere.
    """
    places = _Places(base, home, is_remote_allowed)
    inputs = [places.input(one) for one in job.data]
    results_address, results_served = places.results(job.results, results)
    served = (*(folder for _, folder in inputs if folder), *results_served)
    refuse_loops(served, home)
    code = places.code(job, served)
    changes: dict[str, Any] = {"data": tuple(one for one, _ in inputs), "results": results_address}
    if code is not None:
        changes["code"] = f"s3://{RUN_BUCKET}/{code.key}"
    return PreparedJob(job.model_copy(update=changes), served, code)


@dataclass(frozen=True)
class _Places:
    """What the words of one job mean on this machine."""

    base: Path
    home: Path
    is_remote_allowed: bool

    def input(self, given: DataInput) -> tuple[DataInput, ServedFolder | None]:
        if given.is_given:
            return self._elsewhere("data", given.source, given), None
        if given.source.startswith("s3://"):
            self._require_bucket("data", given.source)
            return given, None
        place = resolve_place(given.source, self.base)
        if place.is_file() and is_archive(place):
            bucket = unpack_once(place, self.home)
            place = bucket_folder(self.home, bucket)
        else:
            _require_data_folder(place)
            bucket = bucket_name("data", place.name, os.fsencode(place))
        return given.model_copy(update={"source": f"s3://{bucket}/"}), ServedFolder(bucket, place, writable=False)

    def results(self, in_job: Results, given: str | None) -> tuple[Results, tuple[ServedFolder, ...]]:
        if given is None and in_job.is_given:
            return self._elsewhere("results", in_job.to, in_job), ()
        wanted = in_job.to if given is None else given
        if wanted.startswith("s3://"):
            self._require_bucket("results", wanted)
            return Results(to=wanted), ()
        if given is not None or wanted != DEFAULT_RESULTS:
            place = resolve_place(wanted, self.base if given is None else Path.cwd())
        else:
            place = resolve_place(DEFAULT_RESULTS_FOLDER, Path.cwd())
        _require_results_folder(place)
        bucket = bucket_name("results", place.name, os.fsencode(place))
        return Results(to=f"s3://{bucket}/"), (ServedFolder(bucket, place, writable=True),)

    def code(self, job: JobSpec, served: tuple[ServedFolder, ...]) -> CodeArchive | None:
        if job.code is None:
            return None
        if job.code.startswith("s3://") and job.access_to(split_bucket(job.code)):
            return None
        if job.code.startswith("s3://"):
            self._require_bucket("code", job.code)
            return None
        place = resolve_place(job.code, self.base)
        data = (resolve_place(one.source, self.base) for one in job.data if not one.source.startswith("s3://"))
        # Keys that lie beside the code must not get into the bucket of the run.
        named = (one.credentials.removeprefix("file:") for one in job.accesses if one.credentials)
        apart = {self.home.resolve(), *data, *(one.folder for one in served)}
        return pack_code(place, {*apart, *(resolve_place(name, self.base) for name in named)} - {place})

    def _elsewhere(self, what: str, address: str, given: A) -> A:
        """Return what names a bucket elsewhere, a secret's file by its whole path. Raises BadPlace."""
        kind, _, name = (given.credentials or "").partition(":")
        if not self.is_remote_allowed and bucket_access(address, given).needs_aws:
            found = f"the role {given.role}" if given.role else f"the secret {given.credentials}"
            raise BadPlace(
                f"{what}: {address} is reached by {found}, and a run on this machine has no account of AWS. Start it "
                "on a deployed stack, or copy the files here; an endpoint's keys are given here as env:VARIABLE or "
                "file:PATH"
            )
        if kind != "file":
            return given
        return given.model_copy(update={"credentials": f"file:{resolve_place(name, self.base)}"})

    def _require_bucket(self, what: str, address: str) -> None:
        bucket = split_bucket(address)
        folder = bucket_folder(self.home, bucket)
        if not self.is_remote_allowed and not folder.is_dir():
            raise BadPlace(
                f"{what}: {address} is not on this machine, and a run on this machine reaches no other. Copy the files "
                f"below {folder}, or name a local folder; a run on AWS starts from the deployed stack"
            )


def split_bucket(address: str) -> str:
    """Return the bucket of `s3://bucket/...`."""
    return address.removeprefix("s3://").partition("/")[0]


def _require_data_folder(place: Path) -> None:
    if not place.exists():
        raise BadPlace(f"data: {place} does not exist; name a folder, an archive or s3://bucket/prefix/")
    if not place.is_dir():
        raise BadPlace(f"data: {place} is neither a folder nor an archive ({', '.join(ARCHIVE_ENDINGS)})")
    _require_plain_name("data", place)
    if next(walk_files(place), None) is None:
        raise BadPlace(f"data: {place} holds no files; a data set needs at least one")


def _require_results_folder(place: Path) -> None:
    """Check that the folder can be made and written, without making it: planning must leave no trace."""
    _require_plain_name("results", place)
    existing = next(one for one in (place, *place.parents) if one.exists())
    if not existing.is_dir():
        raise BadPlace(f"results: {existing} is a file; name a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise BadPlace(f"results: {place} cannot be written; name another folder, for example with --results")


def _require_plain_name(what: str, place: Path) -> None:
    if not str(place).isprintable() or str(place) != str(place).strip():
        raise BadPlace(f"{what}: {str(place)!r} has control characters or blanks at its end in its name; rename it")


def refuse_loops(served: tuple[ServedFolder, ...], home: Path) -> None:
    """Raise BadPlace when a run would read what it writes, or serve the folder that keeps its own state."""
    for one in served:
        if one.folder == bucket_folder(home, one.bucket):
            continue
        what = "the results folder" if one.writable else "the data folder"
        refuse_overlap(what, one.folder, "headrace's own folder", home.resolve())
        for other in served:
            if one.writable and not other.writable:
                refuse_overlap("the results folder", one.folder, "the data folder", other.folder)
