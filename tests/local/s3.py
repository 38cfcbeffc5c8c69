"""An S3 endpoint for tests, with a client that has its keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from headrace.aws.objects import S3Objects
from headrace.local.s3_endpoint import S3Endpoint
from headrace.local.system import SystemEntropy


class RunningS3(NamedTuple):
    """A running endpoint, its Objects port, and the folder of each bucket."""

    endpoint: S3Endpoint
    objects: S3Objects
    results: Path
    data: Path


def objects_of(endpoint: S3Endpoint, secret_access_key: str | None = None) -> S3Objects:
    """Return the port with the endpoint's keys, or with another secret."""
    return S3Objects(
        region="us-east-1",
        endpoint_url=endpoint.url,
        access_key_id=endpoint.access_key_id,
        secret_access_key=secret_access_key or endpoint.secret_access_key,
    )


@contextmanager
def running_s3(folder: Path) -> Iterator[RunningS3]:
    """Serve `<folder>/results` as bucket `results`, and `<folder>/data`, read only, as bucket `data`."""
    endpoint = S3Endpoint(folder / "s3", SystemEntropy(), {"PATH": os.environ["PATH"]})
    for name in ("results", "data"):
        (folder / name).mkdir(exist_ok=True)
        endpoint.serve(name, folder / name, writable=name == "results")
    endpoint.start()
    try:
        with closing(objects_of(endpoint)) as objects:
            yield RunningS3(endpoint, objects, folder / "results", folder / "data")
    finally:
        endpoint.stop()
