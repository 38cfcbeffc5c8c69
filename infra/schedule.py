"""An example of a schedule: trains every night from a job file in the run bucket, once a person switches it on."""

from __future__ import annotations

import json

from aws_cdk import Stack
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.grants import Grant, role
from infra.places import Places

EVERY_NIGHT = "cron(0 2 * * ? *)"
JOB_KEY = "scheduled/nightly.yaml"
"""Not below jobs/, where its upload would start a run at once."""


class ExampleSchedule(Construct):
    """Disabled until it is switched on; one schedule that fires twice makes one run, by its time."""

    def __init__(self, scope: Construct, id_: str, places: Places, machine: sfn.CfnStateMachineAlias) -> None:
        super().__init__(scope, id_)
        grants = [
            Grant(["states:StartExecution"], places.machine("training_run")),
            Grant(["sqs:SendMessage"], [places.dead_letters_arn]),
        ]
        given = {"scheduled_at": "<aws.scheduler.scheduled-time>", "job_ref": f"s3://{places.run_bucket}/{JOB_KEY}"}
        scheduler.CfnSchedule(
            self,
            "Nightly",
            name=f"{Stack.of(self).stack_name}-nightly",
            description="headrace: an example, disabled",
            state="DISABLED",
            schedule_expression=EVERY_NIGHT,
            schedule_expression_timezone="UTC",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=machine.attr_arn,
                role_arn=role(self, "Role", "scheduler.amazonaws.com", grants).role_arn,
                input=json.dumps(given),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=places.dead_letters_arn),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=8, maximum_event_age_in_seconds=3600
                ),
            ),
        )
