"""The state machines, from the very files, each with a role, a log, a version for each change and the alias `live`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.grants import Grant, role
from infra.handlers import NESTED, called_functions, camel, machine_texts, nested_machines


class Machines(Construct):
    """`aliases` by stem. A machine starts a version of another one, as it calls versions of functions."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        functions: Mapping[str, lambda_.Version],
        grants: Mapping[str, Sequence[Grant]],
    ) -> None:
        super().__init__(scope, id_)
        self._functions = functions
        self.versions: dict[str, sfn.CfnStateMachineVersion] = {}
        self.aliases: dict[str, sfn.CfnStateMachineAlias] = {}
        for stem, text in machine_texts().items():
            self._add(stem, text, role(self, f"{camel(stem)}Role", "states.amazonaws.com", grants[stem]))

    def _add(self, stem: str, text: str, machine_role: iam.Role) -> None:
        machine = sfn.CfnStateMachine(
            self,
            camel(stem),
            state_machine_name=f"{Stack.of(self).stack_name}-{stem}",
            state_machine_type="STANDARD",
            role_arn=machine_role.role_arn,
            definition_string=text,
            definition_substitutions=self._substitutions(text),
            logging_configuration=self._logging(stem),
            tracing_configuration=sfn.CfnStateMachine.TracingConfigurationProperty(enabled=True),
        )
        self.versions[stem] = self._version(stem, machine)
        self.aliases[stem] = self._alias(stem, self.versions[stem])

    def _substitutions(self, text: str) -> dict[str, str]:
        functions = {name: self._functions[name].function_arn for name in called_functions(text)}
        machines = {f"{camel(stem)}{NESTED}": self.versions[stem].attr_arn for stem in nested_machines(text)}
        return {**functions, **machines}

    def _logging(self, stem: str) -> sfn.CfnStateMachine.LoggingConfigurationProperty:
        """Log every event without its data, which holds task tokens."""
        group = logs.LogGroup(
            self,
            f"{camel(stem)}Logs",
            log_group_name=f"/aws/vendedlogs/states/{Stack.of(self).stack_name}-{stem}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        to_group = sfn.CfnStateMachine.CloudWatchLogsLogGroupProperty(log_group_arn=group.log_group_arn)
        destination = sfn.CfnStateMachine.LogDestinationProperty(cloud_watch_logs_log_group=to_group)
        return sfn.CfnStateMachine.LoggingConfigurationProperty(
            destinations=[destination], include_execution_data=False, level="ALL"
        )

    def _version(self, stem: str, machine: sfn.CfnStateMachine) -> sfn.CfnStateMachineVersion:
        """Return the version of this definition; older ones stay for the executions that know them."""
        version = sfn.CfnStateMachineVersion(
            self,
            f"{camel(stem)}Version",
            state_machine_arn=machine.attr_arn,
            state_machine_revision_id=machine.attr_state_machine_revision_id,
        )
        version.apply_removal_policy(RemovalPolicy.RETAIN)
        return version

    def _alias(self, stem: str, version: sfn.CfnStateMachineVersion) -> sfn.CfnStateMachineAlias:
        all_to = sfn.CfnStateMachineAlias.RoutingConfigurationVersionProperty(
            state_machine_version_arn=version.attr_arn, weight=100
        )
        return sfn.CfnStateMachineAlias(self, f"{camel(stem)}Live", name="live", routing_configuration=[all_to])


def calls() -> dict[str, list[str]]:
    """Return which functions each state machine calls, by its stem."""
    return {stem: called_functions(text) for stem, text in machine_texts().items()}
