"""Buckets of others are named with what reaches them, strictly, and a secret's name is never echoed."""

from __future__ import annotations

import pytest

from headrace.domain.access import BucketAccess, parse_keys
from headrace.domain.errors import AccessDenied, InfeasibleJob
from headrace.domain.job_text import job_from_mapping, parse_job
from headrace.domain.planner import plan
from tests.domain.job_texts import MINIMAL, faults
from tests.domain.small_world import CHEAP, CPU, TB, dataset, job, world

ROLE = "arn:aws:iam::123456789012:role/team/data-reader"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:minio-AbCdEf"
DATA, RESULTS = "{source: s3://datasets/digits/}", "results: s3://experiments/digits/"
AT_ROLE = f"{{source: s3://theirs/digits/, role: '{ROLE}', external_id: headrace-42}}"
AT_ENDPOINT = "{source: s3://theirs/a/, endpoint: 'https://s3.example.org:9000', credentials: 'env:MINIO'}"


def text(data: str = DATA, results: str = RESULTS) -> str:
    return MINIMAL.replace(DATA, data).replace(RESULTS, results)


def test_a_role_and_an_endpoint_are_read() -> None:
    results = (
        f"results: {{to: s3://lake/out/, endpoint: 'https://lake', credentials: '{SECRET}', signing_region: auto}}"
    )
    read = parse_job(text(AT_ROLE, results))
    assert read.accesses == (
        BucketAccess(bucket="theirs", role=ROLE, external_id="headrace-42"),
        BucketAccess(bucket="lake", endpoint="https://lake", credentials=SECRET, signing_region="auto"),
    )
    assert (read.results.to, read.access_to("lake"), read.access_to("code")) == (
        "s3://lake/out/",
        read.accesses[1],
        None,
    )


def test_results_are_most_often_an_address_alone_and_are_written_so() -> None:
    read = parse_job(MINIMAL)
    assert read.model_dump()["results"] == "s3://experiments/digits/"
    assert read.accesses == ()
    longer = parse_job(text(results="results: {to: s3://experiments/digits/}"))
    assert longer == read
    elsewhere = parse_job(text(results=f"results: {{to: s3://out/, role: '{ROLE}'}}"))
    assert job_from_mapping(elsewhere.model_dump(mode="json", exclude_unset=True)) == elsewhere


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::12345:role/x",
        "arn:aws:iam::123456789012:user/x",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:role/a b",
        "arn:aws:sts::123456789012:assumed-role/x/y",
        "data-reader",
        "*",
        "arn:aws:iam::123456789012:role/*",
    ],
)
def test_what_is_no_role_is_refused(arn: str) -> None:
    (fault,) = faults(text(f"{{source: s3://theirs/a/, role: '{arn}'}}"))
    assert "line 2" in fault
    assert "data.role: " in fault
    assert "is not the ARN of a role; write arn:aws:iam::<12 digits>:role/<name>" in fault


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("http://s3.example.org", "would send keys and data in the clear; write https://"),
        ("https://s3.example.org/path", "no path"),
        ("https://user:pass@s3.example.org", "is not the address of an S3"),
        ("https://s3.example.org?x=1", "is not the address of an S3"),
        ("https://s3.example.org:99999", "is not the address of an S3"),
        ("https://", "is not the address of an S3"),
        ("ftp://s3.example.org", "is not the address of an S3"),
        ("https://UPPER.example.org", "is not the address of an S3"),
        ("s3.example.org", "is not the address of an S3"),
    ],
)
def test_what_is_no_endpoint_is_refused(endpoint: str, told: str) -> None:
    (fault,) = faults(text(f"{{source: s3://theirs/a/, endpoint: '{endpoint}', credentials: 'env:X'}}"))
    assert told in fault


def test_loopback_needs_no_encryption() -> None:
    read = parse_job(text(AT_ENDPOINT.replace("https://s3.example.org:9000", "http://127.0.0.1:9000")))
    assert read.accesses[0].is_loopback
    assert not parse_job(text(AT_ENDPOINT)).accesses[0].is_loopback


@pytest.mark.parametrize("given", ["AKIAEXAMPLEKEY", "aws:sm:x", "env:", "env:AWS_KEYS", "file:", "x" * 2000])
def test_what_is_no_reference_to_a_secret_is_refused_and_not_shown(given: str) -> None:
    (fault,) = faults(text(AT_ENDPOINT.replace("env:MINIO", given)))
    assert "data.credentials: " in fault
    assert len(given) < 6 or given not in fault
    assert "AKIA" not in fault


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (AT_ENDPOINT.replace("}", f", role: '{ROLE}'}}"), "'role' is of AWS and 'endpoint' is not"),
        ("{source: s3://a-b/c/, external_id: 'abc'}", "'external_id' goes with the 'role'"),
        ("{source: s3://a-b/c/, endpoint: 'https://x'}", "an 'endpoint' needs 'credentials'"),
        ("{source: s3://a-b/c/, credentials: 'env:X'}", "go with an 'endpoint'"),
        ("{source: s3://a-b/c/, signing_region: auto}", "go with an 'endpoint'"),
        (f"{{source: ./folder, role: '{ROLE}'}}", "'./folder' is no bucket, so it has no 'role'"),
        (AT_ENDPOINT.replace("}", ", region: us-east-2}"), "write 'signing_region' if it asks"),
        (AT_ROLE.replace("headrace-42", "x"), "data.external_id: should be 2 to 1,224 letters"),
    ],
)
def test_what_does_not_go_together_is_refused(data: str, told: str) -> None:
    (fault,) = faults(text(data))
    assert told in fault


def test_a_fault_of_the_results_has_its_place_in_either_form() -> None:
    (fault,) = faults(text(results="results: s3://X/"))
    assert "line 3, column 10, results: 's3://X/' is not an S3 address" in fault
    assert "results: should be text" in faults(text(results="results: 5"))[0]
    assert "results.to: is missing; add it" in faults(text(results=f"results: {{role: '{ROLE}'}}"))[0]
    assert "did you mean 'role'?" in faults(text(results="results: {to: s3://out/, rolle: x}"))[0]


def test_one_bucket_is_reached_one_way() -> None:
    (fault,) = faults(text(AT_ROLE, "results: s3://theirs/out/"))
    assert "the bucket 'theirs' is named twice, with different access; write the same" in fault
    same = f"results: {{to: s3://theirs/out/, role: '{ROLE}', external_id: headrace-42}}"
    assert len(parse_job(text(AT_ROLE, same)).accesses) == 1


def test_keys_are_read_from_json_and_nothing_else_and_are_not_printed() -> None:
    keys = parse_keys('{"access_key_id": "id", "secret_access_key": "hush"}', SECRET)
    assert (keys.access_key_id, keys.secret_access_key) == ("id", "hush")
    assert "hush" not in repr(keys)
    for bad in (
        "hush",
        "[]",
        '{"access_key_id": "hush"}',
        '{"access_key_id": "", "secret_access_key": "hush"}',
        "null",
    ):
        with pytest.raises(AccessDenied, match="is not as it should be; keep JSON in it") as refused:
            parse_keys(bad, SECRET)
        assert "hush" not in str(refused.value)


def test_data_from_another_s3_come_at_the_rate_of_another_region_and_are_never_read_directly() -> None:
    foreign = {"source": "s3://theirs/a/", "endpoint": "https://lake", "credentials": SECRET}
    here = world({CPU: 1.0, CHEAP: 0.9})
    near, far = (plan(job(**given), dataset(TB), *here).chosen for given in ({}, {"data": foreign}))
    staging = {
        way: next(one for one in found.phases if one.name == "staging") for way, found in (("near", near), ("far", far))
    }
    assert staging["far"].eta_s >= 2 * staging["near"].eta_s
    assert any(
        "https://lake gives as many bytes" in one for one in plan(job(data=foreign), dataset(TB), *here).assumptions
    )
    with pytest.raises(InfeasibleJob, match="direct: the command has no keys for a bucket that is not ours"):
        plan(job(data=foreign, storage="direct"), dataset(TB), *here)
