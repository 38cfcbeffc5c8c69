"""Opening a stack from a person's machine: found by its name, and every trouble told with what to set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, TokenRetrievalError

from headrace.aws.laptop import open_stack, told_in_words
from headrace.domain.errors import CloudUnavailable
from tests.aws.moto_stack import MACHINES, RUN_BUCKET, MotoStack, moto_stack

SetUp = Callable[..., None]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SetUp:
    """Return what sets variables in an environment without any settings for AWS."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def set_up(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_up


@pytest.fixture
def stack(environment: SetUp) -> Iterator[MotoStack]:
    with moto_stack() as made:
        environment(AWS_ENDPOINT_URL=made.url, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
        yield made


@pytest.mark.usefixtures("stack")
def test_a_stack_is_found_by_its_name() -> None:
    cloud = open_stack("headrace", "us-east-1", None)
    assert cloud.settings.run_bucket == RUN_BUCKET
    arn = cloud.executions.start("training_run", "one", {})
    assert arn == f"{MACHINES.replace(':stateMachine:', ':execution:')}training_run:one"
    assert list(cloud.runs.run_ids()) == []


@pytest.mark.usefixtures("stack")
def test_a_stack_that_is_not_there_is_named_with_its_region() -> None:
    with pytest.raises(CloudUnavailable, match="no stack called 'other' in us-east-1; deploy it, or name another"):
        open_stack("other", "us-east-1", None)


def test_a_stack_without_outputs_is_to_be_deployed_again(stack: MotoStack) -> None:
    template = '{"Resources": {"Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": "bare"}}}}'
    stack.clients.cloudformation.create_stack(StackName="bare", TemplateBody=template)
    with pytest.raises(CloudUnavailable, match="'bare' has no output RunBucketName and no TrainingRun; deploy it"):
        open_stack("bare", "us-east-1", None)


def test_without_a_region_it_is_asked_for(environment: SetUp) -> None:
    environment(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    with pytest.raises(CloudUnavailable, match="no region is known; name one with --region"):
        open_stack("headrace", None, None)


@pytest.mark.usefixtures("environment")
def test_without_credentials_a_login_is_asked_for() -> None:
    with pytest.raises(CloudUnavailable, match=r"no credentials for AWS: .* Log in"):
        open_stack("headrace", "us-east-1", None)


@pytest.mark.usefixtures("environment")
def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(CloudUnavailable, match=r"\(nobody\) could not be found; name one of those in"):
        open_stack("headrace", "us-east-1", "nobody")


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "as recorded"}}, "StartExecution")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (refused("ExpiredTokenException"), r"credentials are no longer valid \(ExpiredTokenException: as recorded\)"),
        (refused("AccessDeniedException"), "AWS refused StartExecution: AccessDeniedException: as recorded. Use a"),
        (refused("ThrottlingException"), "AWS answered StartExecution: ThrottlingException: as recorded"),
        (NoCredentialsError(), "no credentials for AWS"),
        (EndpointConnectionError(endpoint_url="there"), "AWS cannot be reached: .*there"),
        (TokenRetrievalError(provider="sso", error_msg="expired"), "AWS: .*expired"),
    ],
)
def test_every_trouble_says_what_to_do(error: Exception, told: str) -> None:
    with pytest.raises(CloudUnavailable, match=told), told_in_words():
        raise error
