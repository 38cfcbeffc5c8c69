"""S3 by obstore, with the settings that every SDK understands, and addresses that it can express."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import S3Store

from headrace_agent.region import bucket_region, own_region

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

S3_ERRORS = (BaseError, OSError)
"""What obstore raises for a request that failed; an absent object is FileNotFoundError, an OSError."""


REQUEST_SECONDS = 120.0
STORES_KEPT = 64
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class S3Address:
    """One object, or a prefix when `key` is empty or ends in a slash."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def parse_address(text: str) -> S3Address:
    """Return the address of `s3://bucket/key`; raises ValueError for anything else."""
    bucket, _, key = text.removeprefix("s3://").partition("/")
    if not text.startswith("s3://") or not bucket:
        raise ValueError(f"{text!r} is not an address like s3://bucket/key")
    return S3Address(bucket, key)


def check_key(key: str) -> None:
    """Raise ValueError for a key that obstore would change or refuse, so that never another object is touched."""
    segments = key.split("/")
    if any(segment in ("", ".", "..") for segment in segments):
        raise ValueError(f"the key {key!r} has an empty, '.' or '..' step, which this agent cannot address")
    if CONTROL_CHARACTER.search(key):
        raise ValueError(f"the key {key!r} holds a control character, which this agent cannot address")


def open_bucket(
    bucket: str, environ: Mapping[str, str] | None = None, request_seconds: float = REQUEST_SECONDS
) -> S3Store:
    """Return a store for one bucket; no request may take longer than `request_seconds`, its body included.

    AWS_ENDPOINT_URL_S3 names another S3 (path style, http allowed); without keys in the environment, obstore asks the
    machine's metadata for them. The same settings give the same store, so that its connections are used again.
    """
    given = os.environ if environ is None else environ
    keys = tuple((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    return _store(bucket, own_region(given), given.get("AWS_ENDPOINT_URL_S3"), request_seconds, keys)


@lru_cache(STORES_KEPT)
def _store(
    bucket: str,
    region: str,
    endpoint: str | None,
    request_seconds: float,
    keys: tuple[tuple[str, str], ...],  # noqa: ARG001 - obstore reads them from the environment
) -> S3Store:
    client: ClientConfig = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=request_seconds)}
    retry: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
    if not endpoint:
        return S3Store(bucket, region=bucket_region(bucket, region), client_options=client, retry_config=retry)
    client["allow_http"] = endpoint.startswith("http://")
    return S3Store(
        bucket,
        endpoint=endpoint,
        region=region,
        virtual_hosted_style_request=False,
        client_options=client,
        retry_config=retry,
    )


def plain_etag(etag: str | None) -> str:
    """Return an ETag without quotes and weakness mark, as manifests hold it."""
    return (etag or "").removeprefix("W/").strip('"')
