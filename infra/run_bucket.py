"""The bucket where job files arrive and runs keep plans, configurations, manifests, logs and receipts."""

from __future__ import annotations

from typing import cast

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.findings import answer

OLD_VERSIONS_DAYS = 7
"""How long an overwritten or deleted object can be brought back; deleted keys of nodes are gone for good after it."""
UNFINISHED_UPLOADS_DAYS = 1


class RunBucket(s3.Bucket):
    """Versioned, encrypted, TLS only; kept when the stack is deleted, since it holds the receipts."""

    def __init__(self, scope: Construct, id_: str, key: kms.IKey | None) -> None:
        super().__init__(
            scope,
            id_,
            versioned=True,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=RemovalPolicy.RETAIN,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="old-versions",
                    noncurrent_version_expiration=Duration.days(OLD_VERSIONS_DAYS),
                    expired_object_delete_marker=True,
                ),
                s3.LifecycleRule(
                    id="unfinished-uploads",
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_UPLOADS_DAYS),
                ),
            ],
        )
        self._tell_eventbridge()
        answer(
            self,
            "AwsSolutions-S1",
            "Access logs need a second bucket; CloudTrail data events, the account's choice, tell more.",
        )

    def _tell_eventbridge(self) -> None:
        """Set EventBridge notifications on the resource itself: the CDK's own switch adds a function that sets them."""
        bucket = cast("s3.CfnBucket", self.node.default_child)
        bucket.add_property_override("NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled", True)
