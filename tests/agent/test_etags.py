"""When an ETag is an MD5."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_agent.etags import is_encrypted_by_key_service, looks_like_md5, md5_of
from headrace_agent.region import own_region
from headrace_agent.s3 import S3Address, check_key, parse_address, plain_etag


@pytest.mark.parametrize(
    ("said", "is_encrypted"),
    [
        ({}, False),
        ({"x-amz-server-side-encryption": "AES256"}, False),
        ({"x-amz-server-side-encryption": "aws:kms"}, True),
        ({"x-amz-server-side-encryption": "aws:kms:dsse"}, True),
        ({"x-amz-server-side-encryption-customer-algorithm": "AES256"}, True),
    ],
)
def test_s3_says_whether_a_key_service_made_the_etag_meaningless(said: dict[str, str], is_encrypted: bool) -> None:
    assert is_encrypted_by_key_service(said) == is_encrypted


@pytest.mark.parametrize(
    ("etag", "plain", "is_md5"),
    [
        ('"9dd4e461268c8034f5c8564e155c67a6"', "9dd4e461268c8034f5c8564e155c67a6", True),
        ('W/"9dd4e461268c8034f5c8564e155c67a6"', "9dd4e461268c8034f5c8564e155c67a6", True),
        ('"9dd4e461268c8034f5c8564e155c67a6-3"', "9dd4e461268c8034f5c8564e155c67a6-3", False),
        (None, "", False),
    ],
)
def test_only_an_etag_of_one_part_looks_like_an_md5(etag: str | None, plain: str, is_md5: bool) -> None:
    assert (plain_etag(etag), looks_like_md5(plain_etag(etag))) == (plain, is_md5)


def test_the_md5_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    assert md5_of(tmp_path / "x") == "9dd4e461268c8034f5c8564e155c67a6"


def test_addresses_are_read() -> None:
    assert parse_address("s3://b/a/k") == S3Address("b", "a/k")
    assert str(parse_address("s3://b")) == "s3://b/"
    for wrong in ("b/k", "s3:///k", "http://b/k"):
        with pytest.raises(ValueError, match="is not an address like s3://bucket/key"):
            parse_address(wrong)


@pytest.mark.parametrize("key", ["/a", "a/", "a//b", ".", "a/../b", "a\nb", "a\x7f", ""])
def test_keys_that_obstore_would_change_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="which this agent cannot address"):
        check_key(key)


def test_without_a_region_anywhere_there_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace_agent.region._region_of_the_machine", lambda: None)
    assert own_region({}) == "us-east-1"
