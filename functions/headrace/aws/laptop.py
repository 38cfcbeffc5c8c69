"""Opens a deployed stack from a person's machine: found by its name, with the credentials that are at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
)

from headrace.aws.clients import Clients
from headrace.aws.cloud import make_cloud
from headrace.aws.elsewhere import AwsElsewhere
from headrace.aws.error_codes import code_of, meaning_of, message_of
from headrace.aws.settings import StackSettings
from headrace.domain.access import BucketAccess
from headrace.domain.errors import CloudUnavailable
from headrace.ports import Cloud, Elsewhere, Objects

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException"}
)
BUCKET, MACHINE = "RunBucketName", "TrainingRun"
"""Outputs of the stack's template."""


def open_stack(stack: str, region: str | None, profile: str | None) -> Cloud:
    """Return the ports of a stack as its own user has them: rows, objects and executions; machines are not theirs.

    Raises CloudUnavailable without credentials, region or stack.
    """
    with told_in_words():
        session = boto3.Session(profile_name=profile, region_name=region)
        if session.region_name is None:
            raise NoRegionError
        clients = Clients(session)
        outputs = _outputs(clients.cloudformation, stack, session.region_name)
    settings = StackSettings(
        stack=stack,
        run_bucket=outputs[BUCKET],
        node_role_id="",
        subnets={},
        machines=outputs[MACHINE].partition("training_run")[0],
    )
    return make_cloud(settings, clients)


def own_elsewhere() -> Elsewhere:
    """Return what reaches buckets of other accounts with a person's own credentials. Raises CloudUnavailable."""
    with told_in_words():
        return _WordedElsewhere(AwsElsewhere(Clients(boto3.Session())))


class _WordedElsewhere:
    """The Elsewhere port, telling in words what is missing on a person's machine."""

    def __init__(self, elsewhere: AwsElsewhere) -> None:
        self._elsewhere = elsewhere

    def objects(self, access: BucketAccess, run_id: str) -> Objects:
        """Return the S3 that the bucket is in. Raises AccessDenied, CloudUnavailable."""
        with told_in_words():
            return self._elsewhere.objects(access, run_id)


def _outputs(client: CloudFormationClient, stack: str, region: str) -> Mapping[str, str]:
    try:
        described = client.describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if code_of(error) != "ValidationError":
            raise
        raise CloudUnavailable(
            f"there is no stack called {stack!r} in {region}; deploy it, or name another with --stack or --region"
        ) from None
    found = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}
    if absent := [name for name in (BUCKET, MACHINE) if name not in found]:
        raise CloudUnavailable(f"the stack {stack!r} has no output {' and no '.join(absent)}; deploy it again")
    return found


@contextmanager
def told_in_words() -> Iterator[None]:
    """Raise CloudUnavailable, saying what to set or to allow, for what AWS or its client answers within the block."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CloudUnavailable(_in_words(error)) from error


def _in_words(error: BotoCoreError | ClientError) -> str:
    if isinstance(error, ClientError):
        return _refused(error)
    if isinstance(error, ProfileNotFound):
        return f"{error}; name one of those in ~/.aws/config with --profile"
    if isinstance(error, NoRegionError):
        return "no region is known; name one with --region, or set AWS_REGION"
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError | SSOError):
        return f"no credentials for AWS: {error}. Log in (aws sso login, aws configure), or name another --profile"
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError | HTTPClientError):
        return f"AWS cannot be reached: {error}. Check the network and the --region"
    return f"AWS: {error}"


def _refused(error: ClientError) -> str:
    if code_of(error) in EXPIRED:
        return f"the credentials are no longer valid ({message_of(error)}); log in again, or name another --profile"
    action = f"{error.operation_name}: {message_of(error)}"
    if meaning_of(code_of(error)) == "denied":
        return f"AWS refused {action}. Use a --profile that may, or have it allowed for this one"
    return f"AWS answered {action}"
