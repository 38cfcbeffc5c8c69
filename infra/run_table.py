"""The table of runs: rows keyed by run and by kind and name, and an index that lists runs newest first."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

INDEX = "by_age"


class RunTable(dynamodb.Table):
    """On demand, with point-in-time recovery.

    It goes with the stack: receipts are in the bucket, and DynamoDB keeps a backup of a deleted table that had
    point-in-time recovery for 35 days.
    """

    def __init__(self, scope: Construct, id_: str, key: kms.IKey | None) -> None:
        text = dynamodb.AttributeType.STRING
        super().__init__(
            scope,
            id_,
            table_name=f"{Stack.of(scope).stack_name}-runs",
            partition_key=dynamodb.Attribute(name="run_id", type=text),
            sort_key=dynamodb.Attribute(name="kind_name", type=text),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if key else dynamodb.TableEncryption.DEFAULT,
            encryption_key=key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.add_global_secondary_index(
            index_name=INDEX,
            partition_key=dynamodb.Attribute(name="kind", type=text),
            sort_key=dynamodb.Attribute(name="listed_at", type=text),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
