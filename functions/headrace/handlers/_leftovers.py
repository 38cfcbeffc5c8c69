"""Removing what an ended run left in its bucket, whether a row of the table knows it or not."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.domain.errors import AccessDenied, CloudUnavailable, ObjectMissing
from headrace.domain.instants import to_text
from headrace.domain.run import RunRow
from headrace.handlers._files import objects_at, read_job, results_address, split_address
from headrace.handlers._rows import change_node, change_run, read_nodes
from headrace.ports import Cloud

PROBE = ".headrace-probe"
"""Written and removed where results will go, to find out before the launch whether they may."""


def probe_place(results: str) -> tuple[str, str]:
    """Return bucket and key of the probe for results at that address."""
    bucket, prefix = split_address(results)
    return bucket, prefix + PROBE


def clean(cloud: Cloud, row: RunRow) -> None:
    """Delete keys and configurations of the run's nodes, its probe and half uploads; then note that nothing is left."""
    _delete_node_objects(cloud, row)
    for node in read_nodes(cloud, row.run_id):
        change_node(cloud, node, {"key_deleted_at": to_text(cloud.clock.now())}, {"key_deleted_at": None})
    _delete_probe(cloud, row)
    abort_uploads(cloud, row)
    remove_stray_receipts(cloud, row)
    change_run(cloud, row.run_id, {"swept_at": to_text(cloud.clock.now())}, {"swept_at": None})


def abort_uploads(cloud: Cloud, row: RunRow) -> None:
    """Remove what machines that died had uploaded of results when they did: nobody will complete it.

    Where that is denied the parts stay, as they would without us, and where nobody answers; a run without a job had
    none.
    """
    try:
        job = read_job(cloud, row)
        bucket, prefix = split_address(results_address(job, row.run_id))
        objects_at(cloud, job, row.run_id, bucket).abort_uploads(bucket, prefix)
    except (AccessDenied, CloudUnavailable, ObjectMissing):
        return


def remove_stray_receipts(cloud: Cloud, row: RunRow) -> None:
    """Delete every receipt but the one that the row names: a reporter may have died between its receipt and the row."""
    for key in _keys(cloud, f"{row.prefix}receipt-") if row.report_key else ():
        if key != row.report_key:
            cloud.objects.delete(cloud.settings.run_bucket, key)


def _delete_node_objects(cloud: Cloud, row: RunRow) -> None:
    for key in _keys(cloud, f"{row.prefix}nodes/"):
        cloud.objects.delete(cloud.settings.run_bucket, key)


def _keys(cloud: Cloud, prefix: str) -> Iterator[str]:
    """Yield every key below the prefix, from all pages; a key may be deleted before the next is asked for."""
    token: str | None = None
    while True:
        page = cloud.objects.page(cloud.settings.run_bucket, prefix, token)
        yield from (found.key for found in page.objects)
        token = page.next_token
        if token is None:
            return


def _delete_probe(cloud: Cloud, row: RunRow) -> None:
    """Delete the probe; a run without a job had none, nor one whose results are in a bucket of others.

    Where writing is denied there is none.
    """
    try:
        job = read_job(cloud, row)
        if not job.results.is_given:
            cloud.objects.delete(*probe_place(results_address(job, row.run_id)))
    except (AccessDenied, ObjectMissing):
        return
