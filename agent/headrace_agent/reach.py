"""Opens the buckets of one task: ours with the machine's own keys, others as the configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace_agent.config import BucketAccess, NodeConfig
from headrace_agent.node import Node
from headrace_agent.s3 import open_bucket, open_endpoint

if TYPE_CHECKING:
    from obstore.store import S3Store

OpenBucket = Callable[[str], "S3Store"]


def reach_of(node: Node, config: NodeConfig) -> OpenBucket:
    """Return what opens a bucket by its name.

    It raises Unreachable at once when a role may not be assumed or a secret not be read, so that nothing begins that
    could not end.
    """
    accesses = {one.bucket: one for one in config.buckets}

    def open_named(bucket: str) -> S3Store:
        access = accesses.get(bucket)
        return open_bucket(bucket) if access is None else _open(access, node)

    return open_named


def _open(access: BucketAccess, node: Node) -> S3Store:
    from headrace_agent.foreign import keys_for  # noqa: PLC0415 - only buckets of others pay for botocore

    keys = keys_for(access, node.run_id, is_process=node.process_node)
    keys.get_frozen_credentials()
    if access.endpoint:
        return open_endpoint(access.bucket, access.endpoint, access.signing_region or "us-east-1", keys)
    return open_bucket(access.bucket, keys=keys)
