"""State CollectResults: checks one slice of the results manifests against the listing of the results bucket."""

from __future__ import annotations

from typing import Any

from headrace.domain.errors import AccessDenied, ObjectMissing, ResultsIncomplete
from headrace.domain.instants import to_text
from headrace.domain.model import Contract
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.handlers._entry import entry
from headrace.handlers._files import objects_at, read_job, read_model, split_address
from headrace.handlers._rows import change_run, enter_phase, read_nodes
from headrace.ports import Cloud, ObjectInfo, Objects

MISSING_SHOWN = 20
PARTS_PER_SLICE = 10
PAGES_PER_PART = 4
"""A part fits into two pages of a listing, unless others write there too; what is not seen then is asked for."""


class Cursor(Contract):
    """Where the check is: `part` counts over all manifests in order of node id."""

    part: int = 0
    node_id: str = ""
    token: str | None = None
    """Which page of the listing the next part of that node begins on."""
    files: int = 0
    bytes: int = 0
    is_done: bool = False


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Check the next parts and return the cursor after them.

    Raises ResultsIncomplete, naming up to 20 files, when S3 and a manifest disagree.
    """
    row = enter_phase(cloud, request["run_id"], "collecting")
    cursor = Cursor.model_validate(request["cursor"] or {})
    manifests = [
        read_model(cloud, row, name, ResultsManifest) for name in sorted(_manifest_names(cloud, request["run_id"]))
    ]
    parts = [(manifest, name) for manifest in manifests for name in manifest.parts]
    job = read_job(cloud, row)
    objects = objects_at(cloud, job, row.run_id, split_address(job.results.to)[0])
    for manifest, name in parts[cursor.part : cursor.part + PARTS_PER_SLICE]:
        files = read_model(cloud, row, name, ResultsPart).files
        begin = cursor.token if cursor.node_id == manifest.node_id else None
        cursor = Cursor(
            part=cursor.part + 1,
            node_id=manifest.node_id,
            token=_check(objects, manifest, files, begin),
            files=cursor.files + len(files),
            bytes=cursor.bytes + sum(one.bytes for one in files),
        )
    if cursor.part >= len(parts):
        cursor = _finish(cloud, row.run_id, cursor, manifests)
    return {"cursor": cursor.model_dump()}


handler = entry(step)


def _manifest_names(cloud: Cloud, run_id: str) -> list[str]:
    names = [node.job.get("manifest") for node in read_nodes(cloud, run_id, "compute") if node.state != "failed"]
    found = [name for name in names if name]
    if not found:
        raise ResultsIncomplete("no compute node wrote a results manifest")
    return found


def _check(objects: Objects, manifest: ResultsManifest, files: tuple[ResultFile, ...], token: str | None) -> str | None:
    """Check the files of a part; return the token of the page that the next part begins on."""
    listed, token = _listed(objects, manifest, files, token)
    doubtful = [file for file in files if not _matches(file, listed.get(file.key))]
    faults = [fault for file in doubtful if (fault := _fault(objects, manifest, file))]
    if faults:
        shown = "; ".join(faults[:MISSING_SHOWN])
        raise ResultsIncomplete(f"{len(faults)} of {len(files)} files of node {manifest.node_id}: {shown}")
    return token


def _listed(
    objects: Objects, manifest: ResultsManifest, files: tuple[ResultFile, ...], token: str | None
) -> tuple[dict[str, ObjectInfo], str | None]:
    """Return what a listing shows up to the last of the files, and the token of the page after it.

    Manifests and listings are both in order of UTF-8. A role that may not list sees nothing here.
    """
    last = max((file.key for file in files), default="")
    listed: dict[str, ObjectInfo] = {}
    for _ in range(PAGES_PER_PART):
        try:
            page = objects.page(manifest.bucket, manifest.prefix, token)
        except (AccessDenied, ObjectMissing):
            break
        listed |= {one.key: one for one in page.objects}
        ends_with = page.objects[-1].key if page.objects else ""
        if page.next_token is None or ends_with > last:
            break
        token = page.next_token
        if ends_with == last:
            break
    return listed, token


def _matches(file: ResultFile, found: ObjectInfo | None) -> bool:
    return found is not None and (found.bytes, found.etag.strip('"')) == (file.bytes, file.etag.strip('"'))


def _fault(objects: Objects, manifest: ResultsManifest, file: ResultFile) -> str | None:
    """Ask for one object; a listing alone condemns nothing."""
    if not file.key.startswith(manifest.prefix):
        return f"{file.key} is outside {manifest.prefix}"
    try:
        found = objects.head(manifest.bucket, file.key)
    except ObjectMissing:
        return f"{file.key} is missing"
    if found.bytes != file.bytes or found.etag.strip('"') != file.etag.strip('"'):
        return f"{file.key} has {found.bytes} bytes and ETag {found.etag}, saved were {file.bytes} and {file.etag}"
    return None


def _finish(cloud: Cloud, run_id: str, cursor: Cursor, manifests: list[ResultsManifest]) -> Cursor:
    claimed = (sum(one.files for one in manifests), sum(one.bytes for one in manifests))
    if claimed != (cursor.files, cursor.bytes):
        raise ResultsIncomplete(
            f"the manifests claim {claimed[0]} files and {claimed[1]} bytes; "
            f"their parts hold {cursor.files} and {cursor.bytes}"
        )
    checked_at = to_text(cloud.clock.now())
    found = {"results_files": cursor.files, "results_bytes": cursor.bytes, "results_checked_at": checked_at}
    change_run(cloud, run_id, found)
    return cursor.model_copy(update={"is_done": True})
