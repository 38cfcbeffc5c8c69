"""Refuses to delete the stack while its runs own machines, which nothing would end any more."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CustomResource, RemovalPolicy, custom_resources
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IDependable

from infra.findings import answer, wildcard_rule

FINDINGS = (
    "AwsSolutions-L1",
    "Serverless-LambdaLatestVersion",
    "Serverless-LambdaTracing",
    "Serverless-LambdaDLQ",
    "Serverless-LambdaDefaultMemorySize",
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
)


class Guard(Construct):
    """The first thing that CloudFormation deletes, since it depends on all the others; it fails when runs live."""

    def __init__(self, scope: Construct, id_: str, function: lambda_.Function, after: Sequence[IDependable]) -> None:
        super().__init__(scope, id_)
        provider = custom_resources.Provider(
            self,
            "Provider",
            on_event_handler=function,
            log_group=logs.LogGroup(
                self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
            ),
        )
        resource = CustomResource(
            self, "Runs", service_token=provider.service_token, resource_type="Custom::HeadraceRuns"
        )
        resource.node.add_dependency(*after)
        versions = wildcard_rule(self, f"{function.function_arn}:*")
        for rule in (*FINDINGS, versions):
            answer(provider, rule, "The CDK's own function, which runs when the stack is made, changed or deleted.")
