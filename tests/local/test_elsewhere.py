"""On one machine, another S3 is reached with keys from a variable or a private file, and nothing of AWS is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.domain.access import BucketAccess
from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.local.elsewhere import LocalElsewhere
from tests.local.s3 import RunningS3, running_s3

RUN = "digits-0123456789"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningS3]:
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


def text_of(s3: RunningS3) -> str:
    keys = {"access_key_id": s3.endpoint.access_key_id, "secret_access_key": s3.endpoint.secret_access_key}
    return json.dumps(keys)


def access(s3: RunningS3, credentials: str) -> BucketAccess:
    return BucketAccess(bucket="results", endpoint=s3.endpoint.url, credentials=credentials)


def test_keys_come_from_a_variable(s3: RunningS3) -> None:
    objects = LocalElsewhere({"LAKE": text_of(s3)}).objects(access(s3, "env:LAKE"), RUN)
    objects.put("results", "a/b", b"12")
    assert [one.key for one in objects.page("results", "a/").objects] == ["a/b"]
    objects.try_upload("results", "a/probe")
    assert objects.abort_uploads("results", "a/") == 0
    with pytest.raises(ObjectMissing):
        objects.head("results", "a/probe")


def test_keys_come_from_a_file_that_only_its_owner_reads(s3: RunningS3, tmp_path: Path) -> None:
    path = tmp_path / "lake.json"
    path.write_text(text_of(s3))
    path.chmod(0o640)
    elsewhere = LocalElsewhere({})
    with pytest.raises(AccessDenied, match=r"lake\.json holds keys and others may read it \(mode 640\); chmod 600 it"):
        elsewhere.objects(access(s3, f"file:{path}"), RUN)
    path.chmod(0o600)
    assert elsewhere.objects(access(s3, f"file:{path}"), RUN).page("results", "none/").objects == ()


def test_other_keys_are_refused(s3: RunningS3) -> None:
    keys = json.dumps({"access_key_id": s3.endpoint.access_key_id, "secret_access_key": "another"})
    with pytest.raises(AccessDenied, match=f"Grant the keys for {s3.endpoint.url} access"):
        LocalElsewhere({"LAKE": keys}).objects(access(s3, "env:LAKE"), RUN).page("results", "")


@pytest.mark.parametrize(
    ("credentials", "told"),
    [
        ("env:NOBODY", "the variable NOBODY, which should hold the endpoint's keys, is not set; set it"),
        ("file:/nowhere/lake.json", "/nowhere/lake.json, .* cannot be read: No such file or directory"),
        ("arn:aws:secretsmanager:r:123456789012:secret:x", "a run on this machine reads no secret of AWS"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(s3: RunningS3, credentials: str, told: str) -> None:
    with pytest.raises(AccessDenied, match=told):
        LocalElsewhere({}).objects(access(s3, credentials), RUN)


def test_no_role_is_assumed_here() -> None:
    role = BucketAccess(bucket="theirs", role="arn:aws:iam::123456789012:role/reader")
    with pytest.raises(AccessDenied, match="has no account of AWS, so it cannot assume arn:aws:iam::123456789012"):
        LocalElsewhere({}).objects(role, RUN)
