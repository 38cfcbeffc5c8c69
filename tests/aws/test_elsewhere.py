"""Buckets of other accounts by assumed roles, other S3s by keys from Secrets Manager; refusals say what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from headrace.aws.clients import Clients
from headrace.aws.elsewhere import AwsElsewhere
from headrace.aws.objects import S3Objects
from headrace.aws.system import SystemClock
from headrace.domain.access import BucketAccess
from headrace.domain.errors import AccessDenied, CloudUnavailable, ObjectMissing
from tests.aws.moto_stack import moto_server, session

ROLE = "arn:aws:iam::210987654321:role/reader"
BY_ROLE = BucketAccess(bucket="theirs", role=ROLE, external_id="headrace-42")
KEYS = {"access_key_id": "id", "secret_access_key": "hush"}
RUN = "digits-0123456789"
NOBODY = "https://127.0.0.1:9"


def keys_of(role: str, url: str) -> dict[str, Any]:
    """Return keys as STS gives them for the role."""
    sts = session().client("sts", endpoint_url=url)
    return dict(sts.assume_role(RoleArn=role, RoleSessionName="setup")["Credentials"])


@contextmanager
def accounts() -> Iterator[str]:
    """Run a moto whose buckets are their own account's alone, with one in another account."""
    with moto_server() as url, patch.dict("os.environ", {"MOTO_S3_ALLOW_CROSSACCOUNT_ACCESS": "false"}):
        keys = keys_of(ROLE, url)
        owner = boto3.client(
            "s3",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )
        owner.create_bucket(Bucket="theirs")
        owner.put_object(Bucket="theirs", Key="set/1", Body=b"1234")
        yield url


def test_a_bucket_of_another_account_is_reached_by_the_role_and_not_without() -> None:
    with accounts() as url:
        own = S3Objects(session=session(), endpoint_url=url)
        with pytest.raises(AccessDenied):
            own.get("theirs", "set/1")
        reached = AwsElsewhere(Clients(session(), url)).objects(BY_ROLE, RUN)
        assert reached.get("theirs", "set/1") == b"1234"
        assert [one.key for one in reached.page("theirs", "set/").objects] == ["set/1"]


def answer(seconds: float) -> dict[str, Any]:
    expires = SystemClock().now() + timedelta(seconds=seconds)
    given = {"AccessKeyId": "ASIAEXAMPLEEXAMPLE", "SecretAccessKey": "hush", "SessionToken": "token"}
    return {"Credentials": {**given, "Expiration": expires}}


def test_a_role_is_assumed_in_the_run_s_name_with_the_external_id_and_again_before_it_expires() -> None:
    asked = {"RoleArn": ROLE, "RoleSessionName": RUN, "DurationSeconds": 3600, "ExternalId": "headrace-42"}
    with moto_server() as url:
        clients = Clients(session(), url)
        with Stubber(clients.sts) as sts:
            sts.add_response("assume_role", answer(300), asked)
            objects = AwsElsewhere(clients).objects(BY_ROLE, RUN)
            sts.add_response("assume_role", answer(3600), asked)
            for _ in range(2):
                with pytest.raises(ObjectMissing):
                    objects.get("theirs", "set/1")
            sts.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("access", "told"),
    [
        (
            BY_ROLE,
            "asked to assume arn:aws:iam::210987654321:role/reader with an external id, STS answered AccessDenied",
        ),
        (BY_ROLE, r"Let the role trust this stack's roles and ask for this external id, and name it in .* data_roles"),
        (
            BY_ROLE.model_copy(update={"external_id": None}),
            "trust this stack's roles without asking for an external id",
        ),
    ],
)
def test_a_role_that_may_not_be_assumed_is_told_with_what_to_change(access: BucketAccess, told: str) -> None:
    clients = Clients(session(), NOBODY)
    with Stubber(clients.sts) as sts:
        sts.add_client_error("assume_role", "AccessDenied", "not authorized", http_status_code=403)
        with pytest.raises(AccessDenied, match=told):
            AwsElsewhere(clients).objects(access, RUN)


@pytest.mark.parametrize("access", [BY_ROLE, BucketAccess(bucket="lake", credentials="arn:aws:s:nowhere:1:secret:x")])
def test_a_service_that_cannot_be_reached_is_told_as_that(access: BucketAccess) -> None:
    def fail(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://nowhere")

    clients = Clients(session(), NOBODY)
    secrets = clients.secrets("nowhere")
    with (
        patch.object(clients.sts, "assume_role", fail),
        patch.object(secrets, "get_secret_value", fail),
        patch.object(Clients, "secrets", lambda *_: secrets),
        pytest.raises(CloudUnavailable, match="Check the region in the ARN"),
    ):
        AwsElsewhere(clients).objects(access, RUN)


def test_sts_is_asked_in_the_stack_s_own_region() -> None:
    clients = Clients(boto3.Session("a", "b", region_name="eu-west-1"))
    assert clients.sts.meta.endpoint_url == "https://sts.eu-west-1.amazonaws.com"
    assert clients.secrets("us-west-2").meta.endpoint_url == "https://secretsmanager.us-west-2.amazonaws.com"


def at_endpoint(endpoint: str, credentials: str) -> BucketAccess:
    return BucketAccess(bucket="lake", endpoint=endpoint, credentials=credentials)


@pytest.fixture
def url() -> Iterator[str]:
    with moto_server() as found:
        yield found


def keep(url: str, text: str) -> str:
    """Keep a secret and return its ARN."""
    return str(
        session().client("secretsmanager", endpoint_url=url).create_secret(Name="lake", SecretString=text)["ARN"]
    )


def test_an_endpoint_s_keys_are_read_from_its_secret(url: str) -> None:
    session().client("s3", endpoint_url=url).create_bucket(Bucket="lake")
    objects = AwsElsewhere(Clients(session(), url)).objects(at_endpoint(url, keep(url, json.dumps(KEYS))), RUN)
    objects.put("lake", "a", b"12")
    assert objects.get("lake", "a") == b"12"


def test_a_secret_that_cannot_be_read_or_used_is_told_without_its_text(url: str) -> None:
    elsewhere = AwsElsewhere(Clients(session(), url))
    broken = keep(url, "hush")
    with pytest.raises(AccessDenied, match="is not as it should be; keep JSON in it") as refused:
        elsewhere.objects(at_endpoint(url, broken), RUN)
    assert "hush" not in str(refused.value)
    absent = broken.replace("lake", "absent")
    with pytest.raises(AccessDenied, match=r"ResourceNotFoundException.* name it in the stack's context data_secrets"):
        elsewhere.objects(at_endpoint(url, absent), RUN)


@pytest.mark.parametrize("reference", ["env:LAKE", "file:/home/me/lake.json"])
def test_what_is_kept_on_one_machine_is_not_on_aws(reference: str) -> None:
    with pytest.raises(AccessDenied, match="which one machine has and AWS has not") as refused:
        AwsElsewhere(Clients(session())).objects(at_endpoint("https://lake", reference), RUN)
    assert "/home/me" not in str(refused.value)


def test_an_endpoint_of_one_machine_is_never_asked_from_aws() -> None:
    with pytest.raises(AccessDenied, match="is on one machine only"):
        AwsElsewhere(Clients(session())).objects(at_endpoint("http://127.0.0.1:9001", "arn:aws:x"), RUN)


def test_an_endpoint_that_does_not_answer_is_named() -> None:
    foreign = S3Objects(region="r", endpoint_url=NOBODY, access_key_id="a", secret_access_key="b", foreign=True)
    with pytest.raises(CloudUnavailable, match=f"asked to read s3://lake/a: {NOBODY} cannot be reached"):
        foreign.get("lake", "a")
