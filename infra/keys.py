"""The KMS key of what is kept: none of the stack's own, a new one, or one that exists."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from constructs import Construct


def make_key(scope: Construct, wanted: str | None) -> kms.IKey | None:
    """Return the key for `create` or for an ARN, or None for keys that AWS keeps.

    The policy of a key that exists must let the account's roles use it, which this stack cannot change.
    """
    if wanted is None:
        return None
    if wanted != "create":
        return kms.Key.from_key_arn(scope, "Key", wanted)
    return kms.Key(
        scope,
        "Key",
        description="headrace: what runs keep",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN,
    )
