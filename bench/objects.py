"""The three data sets of the staging bench, uploaded once into a server's folder."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import obstore

from bench.weed import BUCKET
from headrace_agent.s3 import open_bucket

MIB = 1024 * 1024
UPLOADS_AT_ONCE = 8


class DataSet(NamedTuple):
    """Objects of one size below one prefix; `in_parts` when they are uploaded as the AWS CLI does from 8 MiB on.

    The ETag of an object in parts is not the MD5 of its bytes, so nobody can check it; the CLI and boto3 upload in
    parts from a `multipart_threshold` of 8 MB (AWS CLI S3 Configuration).
    """

    name: str
    objects: int
    object_bytes: int
    in_parts: bool

    @property
    def prefix(self) -> str:
        """Return the prefix of all its keys."""
        return f"{self.name}/"

    @property
    def bytes(self) -> int:
        """Return the bytes of all its objects."""
        return self.objects * self.object_bytes


def upload(data_set: DataSet) -> None:
    """Upload what is not there yet, random bytes all."""
    store = open_bucket(BUCKET)
    there = {one["path"] for batch in obstore.list(store, data_set.prefix) for one in batch}
    keys = [f"{data_set.prefix}{number // 1000:03d}/{number:06d}.bin" for number in range(data_set.objects)]

    def put(key: str) -> None:
        body = os.urandom(data_set.object_bytes)
        obstore.put(store, key, body, use_multipart=data_set.in_parts, chunk_size=8 * MIB, max_concurrency=4)

    with ThreadPoolExecutor(UPLOADS_AT_ONCE if data_set.object_bytes < MIB else 2) as pool:
        list(pool.map(put, [key for key in keys if key not in there]))
