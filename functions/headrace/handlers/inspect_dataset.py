"""State InspectDataset: counts and checks one slice of the data set's keys and writes it to the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.domain.assignment import OpenKeys, is_folder_marker, page_faults, to_path
from headrace.domain.dataset import FILES_PER_PART, DatasetFile, DatasetPart, DatasetSummary
from headrace.domain.errors import AccessDenied, CloudUnavailable, DatasetUnusable, ObjectMissing
from headrace.domain.job import DataInput, JobSpec
from headrace.domain.model import Contract
from headrace.domain.run import RunRow
from headrace.handlers._entry import entry
from headrace.handlers._files import objects_at, read_job, split_address, write_model
from headrace.handlers._rows import change_run, enter_phase, read_standing_run
from headrace.ports import Cloud, ObjectInfo

FAULTS_SHOWN = 20


class Cursor(Contract):
    """Where the listing is: which input, which page, and what was counted so far."""

    input: int = 0
    token: str | None = None
    open_keys: tuple[str, ...] = ()
    """Keys that a later one could turn out to be inside of."""
    input_files: int = 0
    input_bytes: tuple[int, ...] = ()
    """Bytes of each input that is done."""
    files: int = 0
    bytes: int = 0
    largest_bytes: int = 0
    parts: int = 0
    is_done: bool = False


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Inspect up to one part of keys; return the cursor after it.

    Raises DatasetUnusable for an input that is empty, may not be read, or holds keys that cannot become files.
    """
    row = read_standing_run(cloud, request["run_id"])
    enter_phase(cloud, row.run_id, "inspecting")
    job = read_job(cloud, row)
    cursor = Cursor.model_validate(request["cursor"] or {})
    given = job.data[cursor.input]
    listed, token = _list_slice(cloud, job, row.run_id, cursor)
    open_keys = _check_keys(given, listed, cursor.open_keys)
    files = _files(given, listed, is_only=len(job.data) == 1)
    if files:
        write_model(cloud, row, _part_name(cursor.parts), DatasetPart(files=tuple(files)))
    cursor = _advance(cursor, files, token, open_keys)
    if token is None:
        cursor = _next_input(cursor, job)
    if cursor.is_done:
        _finish(cloud, row, cursor)
    return {"cursor": cursor.model_dump()}


handler = entry(step)


def _part_name(number: int) -> str:
    return f"dataset/part-{number:05d}.json"


def _list_slice(cloud: Cloud, job: JobSpec, run_id: str, cursor: Cursor) -> tuple[list[ObjectInfo], str | None]:
    """List one part; of a bucket that is not ours one object is asked for too, since listing is another right."""
    given, token = job.data[cursor.input], cursor.token
    bucket, prefix = split_address(given.source)
    listed: list[ObjectInfo] = []
    try:
        objects = objects_at(cloud, job, run_id, bucket)
        while len(listed) < FILES_PER_PART:
            page = objects.page(bucket, prefix, token)
            listed += page.objects
            token = page.next_token
            if token is None:
                break
        if given.is_given and cursor.token is None and listed:
            objects.head(bucket, listed[0].key)
    except (AccessDenied, CloudUnavailable, ObjectMissing) as error:
        raise DatasetUnusable(f"data: {given.source!r} cannot be read: {error}. Check its name and access") from None
    return listed, token


def _check_keys(given: DataInput, listed: Sequence[ObjectInfo], open_keys: tuple[str, ...]) -> tuple[str, ...]:
    faults, still_open = page_faults(listed, split_address(given.source)[1], OpenKeys(open_keys))
    if faults:
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise DatasetUnusable(
            f"data: {given.source!r} holds keys that cannot become files: {'; '.join(faults[:FAULTS_SHOWN])}{more}. "
            "Rename or exclude them"
        )
    return still_open.keys


def _files(given: DataInput, listed: Sequence[ObjectInfo], *, is_only: bool) -> list[DatasetFile]:
    bucket, prefix = split_address(given.source)
    folder = "" if is_only else f"{given.name}/"
    return [
        DatasetFile(
            source=f"s3://{bucket}/{one.key}", path=folder + to_path(one.key, prefix), bytes=one.bytes, etag=one.etag
        )
        for one in listed
        if not is_folder_marker(one)
    ]


def _advance(cursor: Cursor, files: Sequence[DatasetFile], token: str | None, open_keys: tuple[str, ...]) -> Cursor:
    return cursor.model_copy(
        update={
            "token": token,
            "open_keys": open_keys,
            "input_files": cursor.input_files + len(files),
            "files": cursor.files + len(files),
            "bytes": cursor.bytes + sum(file.bytes for file in files),
            "largest_bytes": max([cursor.largest_bytes, *(file.bytes for file in files)]),
            "parts": cursor.parts + bool(files),
        }
    )


def _next_input(cursor: Cursor, job: JobSpec) -> Cursor:
    if cursor.input_files == 0:
        source = job.data[cursor.input].source
        raise DatasetUnusable(f"data: {source!r} holds no object; check the prefix, and end it with '/' for a folder")
    done = (*cursor.input_bytes, cursor.bytes - sum(cursor.input_bytes))
    if cursor.input + 1 == len(job.data):
        return cursor.model_copy(update={"is_done": True, "input_bytes": done})
    changes = {"input": cursor.input + 1, "input_files": 0, "input_bytes": done, "open_keys": ()}
    return cursor.model_copy(update=changes)


def _finish(cloud: Cloud, row: RunRow, cursor: Cursor) -> None:
    parts = tuple(_part_name(number) for number in range(cursor.parts))
    summary = DatasetSummary(
        files=cursor.files,
        bytes=cursor.bytes,
        largest_bytes=cursor.largest_bytes,
        parts=parts,
        input_bytes=cursor.input_bytes,
    )
    write_model(cloud, row, "dataset/summary.json", summary)
    change_run(cloud, row.run_id, {"dataset_files": cursor.files, "dataset_bytes": cursor.bytes})
