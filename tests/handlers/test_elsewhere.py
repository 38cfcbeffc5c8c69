"""Buckets of other accounts and other S3s: read, written and cleaned as the job says, tried before any launch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.access import BucketAccess
from headrace.domain.job import JobSpec
from headrace.domain.job_text import job_from_mapping
from headrace.handlers import admit_run
from headrace.handlers._leftovers import abort_uploads
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import job, nodes_of, only_run, receipt_of, simulated_site

READER, WRITER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("reader", "writer"))
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-AbCdEf"
LAKE = "https://lake.example.org"
DATA = {"source": "s3://theirs/set/", "role": READER}
LAKE_DATA = {"source": "s3://theirs/set/", "endpoint": LAKE, "credentials": SECRET}
RESULTS = {"to": "s3://theirs-out/small/", "role": WRITER}
LAKE_RESULTS = {"to": "s3://theirs-out/small/", "endpoint": LAKE, "credentials": SECRET}


class ListingOnly:
    """Lets a role list, and nothing else."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects

    def objects(self, access: BucketAccess, run_id: str) -> MemoryObjects:
        reached = self._objects.objects(access, run_id)
        reached.head = self._objects.head  # type: ignore[method-assign]
        return reached


@pytest.fixture
def site() -> Iterator[SimulatedSite]:
    with simulated_site() as made:
        for number in range(5):
            made.objects.put("theirs", f"set/{number}.bin", bytes(100 + number))
        yield made


@pytest.mark.parametrize(
    ("ways", "data", "results"),
    [
        ({"theirs": READER, "theirs-out": WRITER}, DATA, RESULTS),
        ({"theirs": LAKE, "theirs-out": LAKE}, LAKE_DATA, LAKE_RESULTS),
    ],
)
def test_a_run_reads_and_writes_where_it_was_told_how(
    site: SimulatedSite, ways: dict[str, str], data: Any, results: Any
) -> None:
    site.objects.foreign = ways
    site.run(job(data=data, results=results))
    assert (receipt_of(site).status, receipt_of(site).reason) == ("SUCCEEDED", None)
    row = only_run(site)
    assert (row.dataset_files, row.results_files) == (5, 1)
    assert [key for key in site.objects.keys("theirs-out") if not key.startswith(f"small/{row.run_id}/model-")] == []
    kept = [json.loads(site.objects.get(SETTINGS.run_bucket, f"{row.prefix}job.json"))]
    assert kept[0]["data"][0].get("credentials") == data.get("credentials")


@pytest.mark.parametrize(
    ("ways", "reason"),
    [
        (
            {"theirs": WRITER},
            "DatasetUnusable: data: 's3://theirs/set/' cannot be read: bucket 'theirs' is not reached",
        ),
        ({"theirs": READER}, "DestinationDenied: results: 's3://theirs-out/small/' cannot be written: bucket"),
    ],
)
def test_what_cannot_be_reached_ends_the_run_before_any_launch(
    site: SimulatedSite, ways: dict[str, str], reason: str
) -> None:
    site.objects.foreign = ways
    site.run(job(data=DATA, results=RESULTS))
    assert reason in str(receipt_of(site).reason)
    assert nodes_of(site) == ()


def test_a_bucket_that_lists_and_does_not_give_is_refused_before_any_launch(site: SimulatedSite) -> None:
    site.objects.foreign = {"theirs": READER}

    site.cloud = replace(site.cloud, elsewhere=ListingOnly(site.objects))
    site.run(job(data=DATA))
    assert "cannot be read: bucket 'theirs' is another account's" in str(receipt_of(site).reason)
    assert nodes_of(site) == ()


def test_halves_of_results_in_another_account_are_removed(site: SimulatedSite) -> None:
    site.objects.foreign = {"theirs-out": WRITER}
    site.run(job(results=RESULTS))
    row = only_run(site)
    access = BucketAccess(bucket="theirs-out", role=WRITER)
    site.objects.objects(access, row.run_id).upload_half("theirs-out", f"small/{row.run_id}/x", b"1234")
    abort_uploads(site.cloud, row)
    assert site.objects.half_uploads == {}


def test_data_outside_of_aws_give_no_region_and_machines_go_to_the_stack_s() -> None:
    at_home = admit_run._at_home(_spec(LAKE_DATA), "eu-west-1")
    assert (at_home.data[0].region, at_home.region) == (None, "eu-west-1")
    mixed = admit_run._at_home(_spec([LAKE_DATA, {"source": "s3://ours/a/", "name": "own"}]), "eu-west-1")
    assert [one.region for one in mixed.data] == [None, "eu-west-1"]


def _spec(data: Any) -> JobSpec:
    return job_from_mapping(job(data=data)["job"])
