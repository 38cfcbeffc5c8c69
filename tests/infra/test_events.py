"""What starts what: each rule's pattern takes the events it should and no other, and nothing undelivered is lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.events.models import EventPattern

from headrace.domain.triggers import JOBS_PREFIX, parse_trigger
from infra.checkout import CHECKOUT
from tests.infra.assembly import Assembly
from tests.infra.references import ACCOUNT, RUN_BUCKET

EXAMPLES = CHECKOUT / "statemachines" / "examples"


def rules(assembly: Assembly) -> list[dict[str, Any]]:
    return list(assembly.of_type("AWS::Events::Rule").values())


def rule(assembly: Assembly, description: str) -> dict[str, Any]:
    (found,) = (one for one in rules(assembly) if description in one.get("Description", ""))
    return found


def takes(pattern: dict[str, Any], event: Any) -> bool:
    return bool(EventPattern.load(json.dumps(pattern)).matches_event(event))


def upload(**about: Any) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EXAMPLES / "s3-upload.json").read_text())
    event["detail"]["bucket"]["name"] = RUN_BUCKET
    event["detail"]["object"].update(about)
    return event


@pytest.mark.parametrize(
    ("about", "starts"),
    [
        ({}, True),
        ({"key": "jobs/team/nightly.yaml"}, True),
        ({"key": "runs/run-1/plan.json"}, False),
        ({"key": "scheduled/nightly.yaml"}, False),
        ({"key": "jobs/team/", "size": 0}, False),
    ],
)
def test_a_job_file_starts_a_run_and_nothing_else_does(defaults: Assembly, about: dict[str, Any], starts: bool) -> None:
    pattern = rule(defaults, "job files")["EventPattern"]
    assert takes(pattern, upload(**about)) == starts
    assert pattern["detail"]["object"]["key"] == [{"prefix": JOBS_PREFIX}]


def test_an_upload_elsewhere_starts_nothing(defaults: Assembly) -> None:
    event = upload()
    event["detail"]["bucket"]["name"] = "another-bucket"
    assert not takes(rule(defaults, "job files")["EventPattern"], event)


@pytest.mark.parametrize(("status", "calls"), [("FAILED", 1), ("TIMED_OUT", 1), ("ABORTED", 1), ("SUCCEEDED", 0)])
@pytest.mark.parametrize("machine", ["headrace-training_run", "headrace-fleet", "other-training_run"])
def test_a_run_that_ended_badly_is_looked_after(defaults: Assembly, status: str, calls: int, machine: str) -> None:
    event = {
        "source": "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        "detail": {
            "status": status,
            "stateMachineArn": f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:{machine}",
        },
    }
    is_ours = machine == "headrace-training_run"
    assert takes(rule(defaults, "ended without")["EventPattern"], event) == (is_ours and bool(calls))


@pytest.mark.parametrize(("state", "calls"), [("running", 0), ("shutting-down", 1), ("stopped", 1), ("terminated", 1)])
def test_machines_that_end_are_told_of(defaults: Assembly, state: str, calls: int) -> None:
    event = {
        "source": "aws.ec2",
        "detail-type": "EC2 Instance State-change Notification",
        "detail": {"instance-id": "i-0aaa", "state": state},
    }
    found = rule(defaults, "machines that end")
    assert takes(found["EventPattern"], event) == bool(calls)
    assert found["Targets"][0]["Arn"].endswith(":headrace-OnInstanceEvent:live")


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("EC2 Spot Instance Interruption Warning", 1),
        ("EC2 Instance Rebalance Recommendation", 1),
        ("EC2 Instance State-change Notification", 0),
    ],
)
def test_machines_that_will_be_taken_back_are_told_of(defaults: Assembly, kind: str, calls: int) -> None:
    event = {"source": "aws.ec2", "detail-type": kind, "detail": {"instance-id": "i-0aaa"}}
    assert takes(rule(defaults, "taken back")["EventPattern"], event) == bool(calls)


def test_agents_are_heard_on_their_own_bus_alone(defaults: Assembly) -> None:
    found = rule(defaults, "events of agents")
    assert found["EventPattern"] == {"source": ["headrace.agent"]}
    assert found["EventBusName"].startswith("Bus")
    (target,) = found["Targets"]
    assert target["Arn"].endswith(":headrace-OnAgentEvent:live")


def test_the_sweep_comes_every_two_minutes(defaults: Assembly) -> None:
    found = rule(defaults, "nobody owns")
    assert found["ScheduleExpression"] == "rate(2 minutes)"
    assert found["Targets"][0]["Arn"].endswith(":headrace-OnSweep:live")


def test_what_nobody_takes_waits_in_the_queue(defaults: Assembly) -> None:
    targets = [target for one in rules(defaults) for target in one["Targets"]]
    assert len(targets) == 6
    assert {target["DeadLetterConfig"]["Arn"].rpartition(":")[2] for target in targets} == {"headrace-dead-letters"}
    asked = defaults.of_type("AWS::Lambda::EventInvokeConfig").values()
    assert len(asked) == 4
    assert {one["DestinationConfig"]["OnFailure"]["Destination"].rpartition(":")[2] for one in asked} == {
        "headrace-dead-letters"
    }
    assert defaults.only("AWS::Events::EventBus")["DeadLetterConfig"]["Arn"].endswith("headrace-dead-letters")


def test_the_queue_admits_every_rule_and_the_bus(defaults: Assembly) -> None:
    statements = defaults.only("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    admitted = {
        one["Condition"]["ArnEquals"]["aws:SourceArn"]
        for one in statements
        if (one["Effect"], one.get("Principal")) == ("Allow", {"Service": "events.amazonaws.com"})
    }
    wanted = {f"{id_}.Arn" for id_ in defaults.of_type("AWS::Events::Rule")}
    assert admitted == {*wanted, f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/headrace"}
    assert len(wanted) == 6


def test_failures_are_those_of_the_version_that_is_called(defaults: Assembly) -> None:
    asked = defaults.of_type("AWS::Lambda::EventInvokeConfig").values()
    functions = set(defaults.of_type("AWS::Lambda::Function"))
    assert all(one["FunctionName"] in functions and one["Qualifier"] == "live" for one in asked)


def test_the_bus_keeps_an_archive(defaults: Assembly) -> None:
    archive = defaults.only("AWS::Events::Archive")
    assert archive["RetentionDays"] == 30
    assert archive["EventPattern"]["source"] == [{"prefix": "headrace."}]


def test_the_example_schedule_is_off_and_gives_what_admission_understands(defaults: Assembly) -> None:
    schedule = defaults.only("AWS::Scheduler::Schedule")
    assert schedule["State"] == "DISABLED"
    fired_at = datetime(2026, 12, 1, 2, tzinfo=UTC).isoformat()
    given = json.loads(schedule["Target"]["Input"].replace("<aws.scheduler.scheduled-time>", fired_at))
    trigger = parse_trigger(given, "arn")
    assert (trigger.kind, trigger.bucket, trigger.key) == ("schedule", RUN_BUCKET, "scheduled/nightly.yaml")


def test_the_bucket_tells_eventbridge(defaults: Assembly) -> None:
    bucket = defaults.only("AWS::S3::Bucket")
    assert bucket["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}


def test_moto_takes_every_pattern(defaults: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("events")
        for number, one in enumerate(rules(defaults)):
            if "EventPattern" in one:
                client.put_rule(Name=f"rule-{number}", EventPattern=json.dumps(one["EventPattern"]))
        assert len(client.list_rules()["Rules"]) == 5
