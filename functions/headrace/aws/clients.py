"""How every client of AWS is made: bounded in time, and patient with throttling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_sts import STSClient

ATTEMPTS = 5
CONNECT_SECONDS, READ_SECONDS = 5, 60
CONNECTIONS = 50

CONFIG = Config(
    # Adaptive mode slows this client down when a service throttles it, besides trying again.
    retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
    connect_timeout=CONNECT_SECONDS,
    read_timeout=READ_SECONDS,
    max_pool_connections=CONNECTIONS,
)


@dataclass(frozen=True)
class Clients:
    """The clients of one session, each made when it is first used; one client serves many threads.

    `endpoint_url` replaces the endpoint of every service, for servers that stand in for AWS.
    """

    session: boto3.Session
    endpoint_url: str | None = None

    @cached_property
    def ec2(self) -> EC2Client:
        """EC2."""
        return self.session.client("ec2", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def ssm(self) -> SSMClient:
        """Systems Manager."""
        return self.session.client("ssm", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """DynamoDB."""
        return self.session.client("dynamodb", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def events(self) -> EventBridgeClient:
        """EventBridge."""
        return self.session.client("events", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def stepfunctions(self) -> SFNClient:
        """Step Functions."""
        return self.session.client("stepfunctions", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        """CloudFormation."""
        return self.session.client("cloudformation", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def quotas(self) -> ServiceQuotasClient:
        """Service Quotas."""
        return self.session.client("service-quotas", endpoint_url=self.endpoint_url, config=CONFIG)

    @cached_property
    def sts(self) -> STSClient:
        """The region's own Security Token Service, which is what an endpoint of the network leads to."""
        return self.session.client("sts", endpoint_url=self.endpoint_url, config=CONFIG)

    def secrets(self, region: str) -> SecretsManagerClient:
        """Secrets Manager of the region that a secret is in."""
        return self.session.client("secretsmanager", region_name=region, endpoint_url=self.endpoint_url, config=CONFIG)
