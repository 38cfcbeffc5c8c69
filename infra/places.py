"""The addresses of everything that permissions speak of, built from names, so that no role waits for a resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack


@dataclass(frozen=True)
class Places:
    """ARNs in one stack; names are fixed, so an ARN is known before its resource is."""

    stack: Stack
    run_bucket: str
    run_bucket_arn: str
    data_bucket_arns: tuple[str, ...]
    results_bucket_arns: tuple[str, ...]
    data_roles: tuple[str, ...]
    data_secrets: tuple[str, ...]
    key_arn: str | None
    bundle_arn: str
    node_role_arn: str
    launch_template_ids: tuple[str, ...]
    image_ids: tuple[str, ...]
    subnet_ids: tuple[str, ...]
    placement_groups: tuple[str, ...]
    group_ids: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the stack's name, which everything is named for."""
        return self.stack.stack_name

    def arn(self, service: str, rest: str, *, is_regional: bool = True, is_owned: bool = True) -> str:
        """Return `arn:partition:service:region:account:rest`."""
        stack = self.stack
        region = stack.region if is_regional else ""
        account = stack.account if is_owned else ""
        return f"arn:{stack.partition}:{service}:{region}:{account}:{rest}"

    def ec2(self, kind: str, ids: Sequence[str] = ("*",), *, is_owned: bool = True) -> list[str]:
        """Return ARNs of EC2 resources of that kind."""
        return [self.arn("ec2", f"{kind}/{one}", is_owned=is_owned) for one in ids]

    @property
    def bus_arn(self) -> str:
        """Return the bus."""
        return self.arn("events", f"event-bus/{self.name}")

    @property
    def table_arn(self) -> str:
        """Return the run table."""
        return self.arn("dynamodb", f"table/{self.name}-runs")

    @property
    def dead_letters_arn(self) -> str:
        """Return the queue of what could not be delivered."""
        return self.arn("sqs", f"{self.name}-dead-letters")

    @property
    def document_arns(self) -> list[str]:
        """Return the documents that machines may be told to run."""
        return [self.arn("ssm", f"document/{one}") for one in self.documents]

    @property
    def machines_prefix(self) -> str:
        """Return what precedes the stem of a state machine in its ARN."""
        return self.arn("states", f"stateMachine:{self.name}-")

    def machine(self, stem: str) -> list[str]:
        """Return a state machine and each of its versions and aliases."""
        return [f"{self.machines_prefix}{stem}", f"{self.machines_prefix}{stem}:*"]

    def executions(self, stem: str) -> str:
        """Return all executions of a state machine."""
        return self.arn("states", f"execution:{self.name}-{stem}:*")

    def function(self, name: str) -> list[str]:
        """Return all versions of a function."""
        return [self.arn("lambda", f"function:{self.name}-{name}:*")]

    def log_group(self, name: str) -> str:
        """Return the streams of a log group."""
        return self.arn("logs", f"log-group:{name}:*")

    def run_objects(self, *patterns: str) -> list[str]:
        """Return objects of the run bucket."""
        return [f"{self.run_bucket_arn}/{pattern}" for pattern in patterns]
