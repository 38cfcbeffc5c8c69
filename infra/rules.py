"""What starts what: events to functions and state machines, each with retries that end in the dead-letter queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.bus import Bus
from infra.functions import ASYNC_ATTEMPTS
from infra.grants import Grant, role
from infra.permissions import AGENT_SOURCE
from infra.places import Places

JOBS_PREFIX = "jobs/"
BAD_ENDINGS = ("FAILED", "TIMED_OUT", "ABORTED")
INSTANCE_ENDS = ("shutting-down", "stopping", "stopped", "terminated")
INSTANCE_WARNINGS = ("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation")
SWEEP_EVERY_MINUTES = 2
DELIVERY_ATTEMPTS = 8
EVENT_AGE_HOURS = 1
STATUS_AGE_HOURS = 24


class Rules(Construct):
    """The rules of the agents' bus and of the account's own."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        places: Places,
        bus: Bus,
        functions: Mapping[str, lambda_.Alias],
        machines: Mapping[str, sfn.CfnStateMachineAlias],
    ) -> None:
        super().__init__(scope, id_)
        self._places, self._bus, self._functions = places, bus, functions
        self._on_agent_event()
        self._on_instance_event()
        self._on_execution_status()
        self._on_sweep()
        self._on_upload(machines["training_run"])
        for name in ("OnAgentEvent", "OnInstanceEvent", "OnExecutionStatus", "OnSweep"):
            self._give_failures_a_place(name)

    def _on_agent_event(self) -> None:
        events.Rule(
            self,
            "AgentEvents",
            description="headrace: events of agents",
            event_bus=self._bus.bus,
            event_pattern=events.EventPattern(source=[AGENT_SOURCE]),
            targets=[self._target("OnAgentEvent", EVENT_AGE_HOURS)],
        )

    def _on_instance_event(self) -> None:
        """Tell of machines that end or will be taken back; EC2 says of none whose it is, so the function asks."""
        ends = events.EventPattern(
            source=["aws.ec2"],
            detail_type=["EC2 Instance State-change Notification"],
            detail={"state": list(INSTANCE_ENDS)},
        )
        warnings = events.EventPattern(source=["aws.ec2"], detail_type=list(INSTANCE_WARNINGS))
        for id_, what, pattern in (("MachinesEnd", "end", ends), ("MachinesWarned", "will be taken back", warnings)):
            events.Rule(
                self,
                id_,
                description=f"headrace: machines that {what}",
                event_pattern=pattern,
                targets=[self._target("OnInstanceEvent", EVENT_AGE_HOURS)],
            )

    def _on_execution_status(self) -> None:
        """Ask for the decommission of a run whose execution ended without its own."""
        pattern = events.EventPattern(
            source=["aws.states"],
            detail_type=["Step Functions Execution Status Change"],
            detail={
                "status": list(BAD_ENDINGS),
                "stateMachineArn": [self._places.machine("training_run")[0]],
            },
        )
        events.Rule(
            self,
            "ExecutionsEndedBadly",
            description="headrace: runs that ended without reporting",
            event_pattern=pattern,
            targets=[self._target("OnExecutionStatus", STATUS_AGE_HOURS)],
        )

    def _on_sweep(self) -> None:
        events.Rule(
            self,
            "Sweep",
            description="headrace: ends what nobody owns",
            schedule=events.Schedule.rate(Duration.minutes(SWEEP_EVERY_MINUTES)),
            targets=[self._target("OnSweep", EVENT_AGE_HOURS)],
        )

    def _target(self, name: str, age_hours: int) -> targets.LambdaFunction:
        return targets.LambdaFunction(
            self._functions[name],
            dead_letter_queue=self._bus.dead_letters,
            retry_attempts=DELIVERY_ATTEMPTS,
            max_event_age=Duration.hours(age_hours),
        )

    def _on_upload(self, machine: sfn.CfnStateMachineAlias) -> None:
        """Start a run for each job file; objects without content, such as folder markers, are none."""
        grants = [Grant(["states:StartExecution"], self._places.machine("training_run"))]
        rule = events.CfnRule(
            self,
            "JobUploaded",
            description="headrace: job files that were uploaded",
            event_pattern={
                "source": ["aws.s3"],
                "detail-type": ["Object Created"],
                "detail": {
                    "bucket": {"name": [self._places.run_bucket]},
                    "object": {"key": [{"prefix": JOBS_PREFIX}], "size": [{"numeric": [">", 0]}]},
                },
            },
            targets=[self._machine_target(machine, grants)],
        )
        self._bus.take_letters_of(rule.attr_arn)

    def _machine_target(
        self, machine: sfn.CfnStateMachineAlias, grants: Sequence[Grant]
    ) -> events.CfnRule.TargetProperty:
        return events.CfnRule.TargetProperty(
            id="TrainingRun",
            arn=machine.attr_arn,
            role_arn=role(self, "UploadRole", "events.amazonaws.com", grants).role_arn,
            dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=self._bus.dead_letters.queue_arn),
            retry_policy=events.CfnRule.RetryPolicyProperty(
                maximum_retry_attempts=DELIVERY_ATTEMPTS, maximum_event_age_in_seconds=EVENT_AGE_HOURS * 3600
            ),
        )

    def _give_failures_a_place(self, name: str) -> None:
        """Keep what a function could not do after all its attempts."""
        self._functions[name].configure_async_invoke(
            retry_attempts=ASYNC_ATTEMPTS,
            max_event_age=Duration.hours(EVENT_AGE_HOURS),
            on_failure=destinations.SqsDestination(self._bus.dead_letters),
        )
