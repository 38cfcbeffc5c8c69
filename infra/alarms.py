"""The alarms that a person must hear: what was not delivered, and an end that did not come."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

SWEEP_SILENCE_MINUTES = 10


class Alarms(Construct):
    """Each alarm speaks to one topic, and the topic to the address that the context names."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        functions: Mapping[str, lambda_.Function],
        dead_letters: sqs.Queue,
        machines_prefix: str,
        email: str | None,
    ) -> None:
        super().__init__(scope, id_)
        self._topic = sns.Topic(self, "Topic", topic_name=f"{Stack.of(self).stack_name}-alarms", enforce_ssl=True)
        self._let_alarms_speak()
        if email:
            self._topic.add_subscription(subscriptions.EmailSubscription(email, dead_letter_queue=dead_letters))
        five = Duration.minutes(5)
        self._add(
            "DeadLetters",
            "An event could not be delivered or handled; it waits in the queue.",
            dead_letters.metric_approximate_number_of_messages_visible(period=five, statistic="Maximum"),
        )
        self._add(
            "SweepFails",
            "The sweep fails, so machines that nobody owns may go on; see its log.",
            functions["OnSweep"].metric_errors(period=five),
            periods=2,
        )
        self._add(
            "SweepIsSilent",
            f"The sweep did not run for {SWEEP_SILENCE_MINUTES} minutes.",
            functions["OnSweep"].metric_invocations(period=Duration.minutes(SWEEP_SILENCE_MINUTES)),
            comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )
        self._add(
            "DecommissionFails",
            "A run could not be ended; the sweep tries again. Look at the execution and at the run's machines.",
            cloudwatch.Metric(
                namespace="AWS/States",
                metric_name="ExecutionsFailed",
                dimensions_map={"StateMachineArn": f"{machines_prefix}decommission"},
                statistic="Sum",
                period=five,
            ),
        )

    def _let_alarms_speak(self) -> None:
        """Admit CloudWatch by name: the policy that demands TLS replaces the one that every topic has."""
        alarms = Stack.of(self).format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{Stack.of(self).stack_name}-*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self._topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[self._topic.topic_arn],
                conditions={"ArnLike": {"aws:SourceArn": alarms}},
            )
        )

    def _add(
        self,
        id_: str,
        what: str,
        metric: cloudwatch.IMetric,
        periods: int = 1,
        comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id_,
            alarm_name=f"{Stack.of(self).stack_name}-{id_}",
            alarm_description=what,
            metric=metric,
            threshold=1,
            evaluation_periods=periods,
            comparison_operator=comparison,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self._topic))
