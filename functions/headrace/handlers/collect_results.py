"""State CollectResults: checks one slice of the results manifests against the results bucket."""

from __future__ import annotations

from typing import Any

from headrace.domain.errors import ObjectMissing, ResultsIncomplete
from headrace.domain.instants import to_text
from headrace.domain.model import Contract
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.handlers._entry import entry
from headrace.handlers._files import read_model
from headrace.handlers._rows import change_run, enter_phase, read_nodes
from headrace.ports import Cloud

MISSING_SHOWN = 20


class Cursor(Contract):
    """Where the check is: `part` counts over all manifests in order of node id."""

    part: int = 0
    files: int = 0
    bytes: int = 0
    is_done: bool = False


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Check the next part and return the cursor after it.

    Raises ResultsIncomplete, naming up to 20 files, when S3 and a manifest disagree.
    """
    row = enter_phase(cloud, request["run_id"], "collecting")
    cursor = Cursor.model_validate(request["cursor"] or {})
    manifests = [
        read_model(cloud, row, name, ResultsManifest) for name in sorted(_manifest_names(cloud, request["run_id"]))
    ]
    parts = [(manifest, name) for manifest in manifests for name in manifest.parts]
    if cursor.part < len(parts):
        manifest, name = parts[cursor.part]
        files = read_model(cloud, row, name, ResultsPart).files
        _check(cloud, manifest, files)
        cursor = Cursor(
            part=cursor.part + 1, files=cursor.files + len(files), bytes=cursor.bytes + sum(one.bytes for one in files)
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


def _check(cloud: Cloud, manifest: ResultsManifest, files: tuple[ResultFile, ...]) -> None:
    faults = [fault for file in files if (fault := _fault(cloud, manifest, file))]
    if faults:
        shown = "; ".join(faults[:MISSING_SHOWN])
        raise ResultsIncomplete(f"{len(faults)} of {len(files)} files of node {manifest.node_id}: {shown}")


def _fault(cloud: Cloud, manifest: ResultsManifest, file: ResultFile) -> str | None:
    if not file.key.startswith(manifest.prefix):
        return f"{file.key} is outside {manifest.prefix}"
    try:
        found = cloud.objects.head(manifest.bucket, file.key)
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
