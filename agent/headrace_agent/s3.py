"""S3 by obstore, with the settings that every SDK understands, and addresses that it can express."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import S3Store

from headrace_agent.region import bucket_region, own_region

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

S3_ERRORS = (BaseError, OSError)
"""What obstore raises for a request that failed; an absent object is FileNotFoundError, an OSError."""


REQUEST_SECONDS = 120.0
HELD = timedelta(minutes=9)
"""How long obstore may use keys without asking again: botocore hands out none that expire within ten minutes."""
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


class KeyedStore(S3Store):
    """A bucket that is reached with keys of its own instead of the machine's."""

    keys: Credentials


def open_bucket(
    bucket: str,
    environ: Mapping[str, str] | None = None,
    request_seconds: float = REQUEST_SECONDS,
    keys: Credentials | None = None,
) -> S3Store:
    """Return a store for one bucket; no request may take longer than `request_seconds`, its body included.

    AWS_ENDPOINT_URL_S3 names another S3 (path style, http allowed); without keys here or in the environment, obstore
    asks the machine's metadata for them. Without keys the same settings give the same store, so that its connections
    are used again.
    """
    given = os.environ if environ is None else environ
    region = own_region(given)
    endpoint = given.get("AWS_ENDPOINT_URL_S3")
    there = region if endpoint else bucket_region(bucket, region)
    if keys is not None:
        return _opened(bucket, endpoint, there, request_seconds, keys)
    names = tuple((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    return _kept(bucket, endpoint, there, request_seconds, names)


def open_endpoint(bucket: str, endpoint: str, region: str, keys: Credentials) -> S3Store:
    """Return a store for a bucket of another maker's S3, which is addressed by path."""
    return _opened(bucket, endpoint, region, REQUEST_SECONDS, keys)


@lru_cache(STORES_KEPT)
def _kept(
    bucket: str,
    endpoint: str | None,
    region: str,
    request_seconds: float,
    names: tuple[tuple[str, str], ...],  # noqa: ARG001 - obstore reads them from the environment
) -> S3Store:
    return _opened(bucket, endpoint, region, request_seconds, None)


def _opened(
    bucket: str, endpoint: str | None, region: str, request_seconds: float, keys: Credentials | None
) -> S3Store:
    client: ClientConfig = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=request_seconds)}
    retry: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
    place: S3Config = {"bucket": bucket, "region": region}
    if endpoint:
        client["allow_http"] = endpoint.startswith("http://")
        # Not `endpoint`, over which AWS_ENDPOINT_URL_S3 of the environment would win.
        place |= {"aws_endpoint_url_s3": endpoint, "virtual_hosted_style_request": False}
    if keys is None:
        return S3Store(config=place, client_options=client, retry_config=retry)
    provider = _provider(keys)
    store = KeyedStore(config=place, client_options=client, retry_config=retry, credential_provider=provider)
    store.keys = keys
    return store


def _provider(keys: Credentials) -> Callable[[], S3Credential]:
    def current() -> S3Credential:
        frozen = keys.get_frozen_credentials()
        return {
            "access_key_id": str(frozen.access_key),
            "secret_access_key": str(frozen.secret_key),
            "token": frozen.token or None,
            "expires_at": datetime.now(UTC) + HELD,
        }

    return current


def plain_etag(etag: str | None) -> str:
    """Return an ETag without quotes and weakness mark, as manifests hold it."""
    return (etag or "").removeprefix("W/").strip('"')
