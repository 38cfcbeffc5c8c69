"""The functions: one for each handler, all from one asset and one layer, each with its own role, version and log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.checkout import CHECKOUT
from infra.findings import answer
from infra.grants import Grant, role
from infra.handlers import camel, handler_modules, time_limits
from infra.wheels import dependencies_layer

OTHER_ROOMS = ("cli", "client", "local", "report", "__main__.py", "py.typed")
"""What a function never imports."""
MARGIN_SECONDS = 10
"""A function ends before the state that waits for it does, so that its own error is what the state sees."""
EVENT_SECONDS, SWEEP_SECONDS, LONGEST_SECONDS = 60, 300, 290
MEMORY_MIB = 512
BUSY_MEMORY_MIB = 1769
"""What comes with one whole core (AWS Lambda developer guide, "Configure Lambda function memory")."""
BUSY = frozenset({"InspectDataset", "PlanLayout", "StageDataset"})
ASYNC_ATTEMPTS = 2


class Functions(Construct):
    """`versions` and `aliases` by name; state machines call versions, so that no deployment changes a run in flight."""

    def __init__(
        self, scope: Construct, id_: str, environment: Mapping[str, str], grants: Mapping[str, Sequence[Grant]]
    ) -> None:
        super().__init__(scope, id_)
        self._environment = dict(environment)
        self._code = _code()
        self._layer = self._make_layer()
        self.functions = {name: self._function(name, grants[name]) for name in map(camel, handler_modules())}
        self.versions = {name: one.current_version for name, one in self.functions.items()}
        self.aliases = {name: self._alias(name) for name in self.functions}

    def _make_layer(self) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            "Dependencies",
            code=lambda_.Code.from_asset(str(dependencies_layer())),
            compatible_architectures=[lambda_.Architecture.ARM_64],
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            description="headrace: what its functions import",
        )

    def _function(self, name: str, grants: Sequence[Grant]) -> lambda_.Function:
        stack = Stack.of(self).stack_name
        function = lambda_.Function(
            self,
            name,
            function_name=f"{stack}-{name}",
            description=f"headrace: {name}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"headrace.handlers.{_module(name)}.handler",
            code=self._code,
            layers=[self._layer],
            role=role(self, f"{name}Role", "lambda.amazonaws.com", grants).without_policy_updates(),
            environment=self._environment,
            timeout=Duration.seconds(timeout_seconds(name)),
            memory_size=BUSY_MEMORY_MIB if name in BUSY else MEMORY_MIB,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=self._log_group(name),
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
        )
        _explain(function)
        return function

    def _log_group(self, name: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            f"{name}Logs",
            log_group_name=f"/aws/lambda/{Stack.of(self).stack_name}-{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _alias(self, name: str) -> lambda_.Alias:
        return lambda_.Alias(self, f"{name}Live", alias_name="live", version=self.versions[name])


def timeout_seconds(name: str) -> int:
    """Return how long a function may run."""
    if name.startswith("On"):
        return SWEEP_SECONDS if name in ("OnSweep", "OnStackDelete") else EVENT_SECONDS
    return min(time_limits().get(name, LONGEST_SECONDS) - MARGIN_SECONDS, LONGEST_SECONDS)


def _module(name: str) -> str:
    return {camel(module): module for module in handler_modules()}[name]


def _code() -> lambda_.Code:
    """Return the package that all functions share, without the rooms that no function enters."""
    exclude = ["**/__pycache__", "__pycache__", *(f"headrace/{room}" for room in OTHER_ROOMS)]
    return lambda_.Code.from_asset(str(CHECKOUT / "functions"), exclude=exclude)


def _explain(function: lambda_.Function) -> None:
    reasons = {
        "AwsSolutions-L1": "Python 3.13 is what the packages of the layer are built and tested for.",
        "Serverless-LambdaLatestVersion": "Python 3.13 is what the packages of the layer are built and tested for.",
        "Serverless-LambdaDLQ": "Called by state machines, which see every failure; the others name a destination.",
    }
    for rule, reason in reasons.items():
        answer(function, rule, reason)
