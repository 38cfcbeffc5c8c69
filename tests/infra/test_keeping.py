"""What remembers, watches and guards: the bucket, the table, the alarms, and the refusal to be deleted."""

from __future__ import annotations

from tests.infra.assembly import Assembly
from tests.infra.references import ACCOUNT


def test_the_bucket_is_versioned_encrypted_private_and_stays(defaults: Assembly, options: Assembly) -> None:
    for assembly, algorithm in ((defaults, "AES256"), (options, "aws:kms")):
        bucket = assembly.only("AWS::S3::Bucket")
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == algorithm
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        (resource,) = (one for one in assembly.resources.values() if one["Type"] == "AWS::S3::Bucket")
        assert resource["DeletionPolicy"] == "Retain"


def test_the_bucket_is_reached_by_tls_alone(defaults: Assembly) -> None:
    statements = defaults.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    denied = [one for one in statements if one["Effect"] == "Deny"]
    conditions = [one["Condition"] for one in denied]
    assert {"Bool": {"aws:SecureTransport": "false"}} in conditions
    assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in conditions


def test_deleted_keys_of_nodes_are_gone_after_a_week(defaults: Assembly) -> None:
    rules = {one["Id"]: one for one in defaults.only("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]}
    assert rules["old-versions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_the_table_is_keyed_as_the_functions_expect(defaults: Assembly) -> None:
    table = defaults.only("AWS::DynamoDB::Table")
    assert table["TableName"] == "headrace-runs"
    assert [(one["AttributeName"], one["KeyType"]) for one in table["KeySchema"]] == [
        ("run_id", "HASH"),
        ("kind_name", "RANGE"),
    ]
    (index,) = table["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("by_age", {"ProjectionType": "KEYS_ONLY"})
    assert [one["AttributeName"] for one in index["KeySchema"]] == ["kind", "listed_at"]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def test_every_alarm_speaks_and_says_what_to_look_at(options: Assembly) -> None:
    alarms = options.by_name("AWS::CloudWatch::Alarm", "AlarmName")
    assert set(alarms) == {"DeadLetters", "SweepFails", "SweepIsSilent", "DecommissionFails"}
    assert all(alarm["AlarmActions"] and len(alarm["AlarmDescription"].split()) > 5 for alarm in alarms.values())
    assert alarms["SweepIsSilent"]["TreatMissingData"] == "breaching"
    subscription = options.only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "operator@example.com")


def test_alarms_may_speak_to_the_topic(options: Assembly) -> None:
    statements = options.only("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    (allowed,) = (one for one in statements if one["Effect"] == "Allow")
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"]["ArnLike"]["aws:SourceArn"] == f"arn:aws:cloudwatch:eu-west-1:{ACCOUNT}:alarm:lab-*"


def test_alarms_and_dashboard_watch_what_there_is(options: Assembly) -> None:
    alarm = options.by_name("AWS::CloudWatch::Alarm", "AlarmName")["DecommissionFails"]
    (dimension,) = alarm["Dimensions"]
    assert dimension["Value"] == f"arn:aws:states:eu-west-1:{ACCOUNT}:stateMachine:lab-decommission"
    body = options.only("AWS::CloudWatch::Dashboard")["DashboardBody"]
    assert all(f"stateMachine:lab-{stem}" in body for stem in ("training_run", "fleet", "salvage", "decommission"))


def test_a_dashboard_is_made_only_when_asked_for(defaults: Assembly) -> None:
    assert defaults.of_type("AWS::CloudWatch::Dashboard") == {}


def test_the_guard_goes_before_anything_that_runs_need(defaults: Assembly) -> None:
    """CloudFormation deletes what depends before what is depended on."""
    (guard,) = (one for one in defaults.resources.values() if one["Type"] == "Custom::HeadraceRuns")
    needed = set(guard["DependsOn"])
    kinds = ("StepFunctions", "Lambda::Function", "Events::Rule", "DynamoDB", "EC2::LaunchTemplate", "SSM::Document")
    for id_, resource in defaults.resources.items():
        if id_.startswith(("Guard", "RunBucketAutoDelete")):
            continue
        if any(kind in resource["Type"] for kind in kinds):
            assert id_ in needed, id_


def test_everything_that_takes_tags_has_the_stack_s(options: Assembly) -> None:
    for type_ in ("AWS::Lambda::Function", "AWS::S3::Bucket", "AWS::IAM::Role", "AWS::SQS::Queue"):
        for properties in options.of_type(type_).values():
            tags = {tag["Key"]: tag["Value"] for tag in properties["Tags"]}
            assert tags["headrace:stack"] == "lab"
            assert tags["team"] == "vision"
