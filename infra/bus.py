"""The event bus of the agents, with an archive and one queue for whatever could not be delivered."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import answer

ARCHIVE_DAYS = 30


class Bus(Construct):
    """`bus` takes the events, `dead_letters` those that nobody took."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        name = Stack.of(self).stack_name
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=f"{name}-dead-letters",
            enforce_ssl=True,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            retention_period=Duration.days(14),
        )
        self.bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=name,
            description="headrace: what agents report",
            dead_letter_queue=self.dead_letters,
        )
        self.bus.archive(
            "Archive",
            archive_name=name,
            description="headrace: what agents reported",
            event_pattern=events.EventPattern(source=events.Match.prefix("headrace.")),
            retention=Duration.days(ARCHIVE_DAYS),
        )
        self.take_letters_of(self.bus.event_bus_arn)
        for rule in ("AwsSolutions-SQS3", "Serverless-SQSRedrivePolicy"):
            answer(self.dead_letters, rule, "This queue is the dead-letter queue.")

    def take_letters_of(self, source_arn: str) -> None:
        """Let EventBridge put into the queue what this rule or bus could not deliver."""
        self.dead_letters.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sqs:SendMessage"],
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                resources=[self.dead_letters.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": source_arn}},
            )
        )
