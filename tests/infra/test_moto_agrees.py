"""Moto's IAM, written by others, decides as the evaluator of these tests does, and enforces S3 with the real policies.

Moto knows neither conditions of identity policies nor policy variables, so statements that have them are left out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count
from moto.iam.access_control import IAMPolicy, PermissionResult

from tests.infra.assembly import Assembly
from tests.infra.permission_rows import ROWS
from tests.infra.policies import Role, as_list, role_of_function, roles

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
}


def is_plain(statement: dict[str, Any]) -> bool:
    return "Condition" not in statement and not any("${" in one for one in as_list(statement["Resource"]))


def plain(role: Role) -> Role:
    """Return the role without the statements that moto cannot read."""
    role.statements = [one for one in role.statements if is_plain(one)]
    return role


def policy(role: Role) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": role.statements})


def test_moto_decides_every_action_on_every_resource_as_the_evaluator_does(options: Assembly) -> None:
    questions = sorted({(row.action, row.resource) for row in ROWS})
    answers = {True: 0, False: 0}
    for id_, role in roles(options).items():
        known = plain(role)
        theirs = IAMPolicy(policy(known))
        for action, resource in questions:
            ours = known.may(action, resource)
            assert (theirs.is_action_permitted(action, resource) is PermissionResult.PERMITTED) == ours, (id_, action)
            answers[ours] += 1
    assert min(answers.values()) > 200, answers


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        for bucket in ("run-bucket", "results-a"):
            boto3.client("s3").create_bucket(Bucket=bucket)
        yield


def session_of(role: Role) -> boto3.Session:
    """Return a session under the role's policies."""
    iam = boto3.client("iam")
    arn = iam.create_role(RoleName="tried", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName="tried", PolicyName="own", PolicyDocument=policy(plain(role)))
    keys = boto3.client("sts").assume_role(RoleArn=arn, RoleSessionName="session")["Credentials"]
    return boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("function", "bucket", "key"),
    [
        ("PlanLayout", "run-bucket", "runs/run-1/plan.json"),
        ("PlanLayout", "run-bucket", "jobs/again.yaml"),
        ("PlanLayout", "results-a", "small/run-1/.headrace-probe"),
        ("PlanLayout", "results-a", "small/run-1/model.pt"),
        ("OnAgentEvent", "run-bucket", "runs/run-1/nodes/AROA:i-1/lease.json"),
        ("OnAgentEvent", "run-bucket", "runs/run-1/plan.json"),
        ("CollectResults", "run-bucket", "runs/run-1/plan.json"),
        ("OnStackDelete", "run-bucket", "runs/run-1/plan.json"),
    ],
)
def test_s3_takes_and_refuses_as_the_evaluator_says(options: Assembly, function: str, bucket: str, key: str) -> None:
    role = role_of_function(options, function)
    client = session_of(role).client("s3")

    @set_initial_no_auth_action_count(0)
    def refusal() -> str | None:
        try:
            client.put_object(Bucket=bucket, Key=key, Body=b"")
        except ClientError as error:
            return error.response["Error"]["Code"]
        return None

    is_allowed = role.may("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}")
    assert refusal() == (None if is_allowed else "AccessDenied")
