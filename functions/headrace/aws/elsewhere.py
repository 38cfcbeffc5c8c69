"""The Elsewhere port on AWS: buckets of other accounts by assumed roles, other S3s by keys from Secrets Manager."""

from __future__ import annotations

from typing import Any, cast

import boto3
import botocore.session
from botocore.credentials import CredentialProvider, CredentialResolver, Credentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from headrace.aws.clients import Clients
from headrace.aws.error_codes import message_of
from headrace.aws.objects import S3Objects
from headrace.domain.access import BucketAccess, Keys, parse_keys
from headrace.domain.errors import AccessDenied, CloudUnavailable
from headrace.ports import Objects

SESSION_SECONDS = 3600
"""The most for a role that is assumed with the credentials of another one (IAM user guide, "Role chaining")."""


class AwsElsewhere:
    """The Elsewhere port; what it fetches lives as long as the Objects that it returns."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def objects(self, access: BucketAccess, run_id: str) -> Objects:
        """Return the S3 that the bucket is in. Raises AccessDenied, CloudUnavailable."""
        if access.role:
            return S3Objects(
                session=self._session_of(access, access.role, run_id), endpoint_url=self._clients.endpoint_url
            )
        if access.is_loopback and self._clients.endpoint_url is None:
            raise AccessDenied(
                f"the endpoint {access.endpoint} is on one machine only, and a run on AWS is not there; name one that "
                "its machines can reach"
            )
        keys = self._keys(access.credentials or "")
        return S3Objects(
            region=access.region,
            endpoint_url=access.endpoint,
            access_key_id=keys.access_key_id,
            secret_access_key=keys.secret_access_key,
            session=self._clients.session,
            foreign=True,
        )

    def _session_of(self, access: BucketAccess, role: str, run_id: str) -> boto3.Session:
        """Return a session whose keys botocore renews before they expire."""

        def fetch() -> dict[str, Any]:
            return self._assume(role, access.external_id, run_id)

        core = botocore.session.Session()
        keys = RefreshableCredentials.create_from_metadata(fetch(), refresh_using=fetch, method="sts-assume-role")
        core.register_component("credential_provider", CredentialResolver([_Given(keys)]))
        return boto3.Session(botocore_session=core, region_name=self._clients.session.region_name)

    def _assume(self, role: str, external_id: str | None, run_id: str) -> dict[str, Any]:
        """Return new keys as botocore's RefreshableCredentials take them."""
        given = {"RoleArn": role, "RoleSessionName": run_id, "DurationSeconds": SESSION_SECONDS}
        if external_id:
            given["ExternalId"] = external_id
        try:
            found = self._clients.sts.assume_role(**cast("Any", given))["Credentials"]
        except ClientError as error:
            raise AccessDenied(
                f"asked to assume {role}{' with an external id' if external_id else ''}, STS answered "
                f"{message_of(error)}. Let the role trust this stack's roles{_and_id(external_id)}, and name it in the "
                "stack's context data_roles"
            ) from error
        except BotoCoreError as error:
            raise _unheard(f"to assume {role}", error) from error
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    def _keys(self, reference: str) -> Keys:
        if not reference.startswith("arn:"):
            kind = reference.partition(":")[0]
            raise AccessDenied(
                f"the credentials are given as {kind}:..., which one machine has and AWS has not; keep them in Secrets "
                "Manager and write the secret's ARN"
            )
        try:
            found = self._clients.secrets(reference.split(":")[3]).get_secret_value(SecretId=reference)
        except ClientError as error:
            raise AccessDenied(
                f"asked for the secret {reference}, Secrets Manager answered {message_of(error)}. Check the ARN, and "
                "name it in the stack's context data_secrets"
            ) from error
        except BotoCoreError as error:
            raise _unheard(f"for the secret {reference}", error) from error
        return parse_keys(found.get("SecretString", ""), reference)


def _unheard(what: str, error: BotoCoreError) -> CloudUnavailable:
    return CloudUnavailable(f"asked {what}: {error}. Check the region in the ARN, the network, and who asks")


def _and_id(external_id: str | None) -> str:
    return " and ask for this external id" if external_id else " without asking for an external id"


class _Given(CredentialProvider):
    """Hands out credentials that are there already."""

    METHOD = "given"

    def __init__(self, keys: Credentials) -> None:
        super().__init__()
        self._keys = keys

    def load(self) -> Credentials:
        """Return them."""
        return self._keys
