"""Finds the region that this machine and a bucket are in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SSM_REGION_NAME")
"""The last is what Systems Manager's agent sets for the commands it runs."""


def own_region(environ: Mapping[str, str]) -> str:
    """Return the region from the environment, else from the machine's metadata, else us-east-1."""
    for name in REGION_VARIABLES:
        if environ.get(name):
            return environ[name]
    return _region_of_the_machine() or "us-east-1"


@cache
def _region_of_the_machine() -> str | None:
    from botocore.utils import InstanceMetadataRegionFetcher  # noqa: PLC0415 - only machines without settings pay for it

    region: str | None = InstanceMetadataRegionFetcher(
        timeout=1, num_attempts=2, env=dict(os.environ)
    ).retrieve_region()
    return region


@cache
def bucket_region(bucket: str, own: str) -> str:
    """Return the region of a bucket on AWS, or `own` when S3 does not say.

    S3 names it in `x-amz-bucket-region` even when it refuses the request (HeadBucket in the S3 API reference).
    """
    import http.client  # noqa: PLC0415 - commands that are given an endpoint, or whose region is known, need none of it

    connection = http.client.HTTPSConnection(f"s3.{own}.amazonaws.com", timeout=5)
    try:
        connection.request("HEAD", f"/{bucket}")
        return connection.getresponse().getheader("x-amz-bucket-region") or own
    except OSError:
        return own
    finally:
        connection.close()
