"""Keys for buckets that are not ours: of a role that this machine assumes, or of a secret that it reads."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from botocore.credentials import DeferredRefreshableCredentials

from headrace_agent.aws_call import SECRETS, STS, CallFailed, call
from headrace_agent.config import BucketAccess
from headrace_agent.region import own_region
from headrace_agent.text import first_line

STS_VERSION = "2011-06-15"
SESSION_SECONDS = 3600
"""The most for a role that is assumed with the keys of another one (IAM user guide, "Role chaining")."""

SECRET_SECONDS = 3600
"""How long a secret is taken to hold what it held: one that is changed meanwhile is read again."""

TIMEOUT_SECONDS = 20.0
OTHERS = stat.S_IRWXG | stat.S_IRWXO
Fetch = Callable[[], dict[str, str]]
"""Returns keys as botocore's refreshable credentials take them."""


class Unreachable(OSError):
    """A bucket that is not ours cannot be reached; the text says what was asked and what to change, never a key."""


def keys_for(access: BucketAccess, run_id: str, *, is_process: bool) -> DeferredRefreshableCredentials:
    """Return keys that are fetched when they are first used, and again some time before they expire.

    botocore fetches in good time and blocks only in the last ten minutes. `is_process` tells that this node is a
    process of a person's machine, which alone has secrets of its own. Using them raises Unreachable.
    """

    def fetch() -> dict[str, str]:
        return _assumed(access, run_id) if access.role else _read(access.credentials or "", is_process=is_process)

    return DeferredRefreshableCredentials(refresh_using=fetch, method="headrace")


def _assumed(access: BucketAccess, run_id: str) -> dict[str, str]:
    """Return keys of the role (AWS STS API reference, AssumeRole)."""
    asked = {
        "Action": "AssumeRole",
        "Version": STS_VERSION,
        "RoleArn": access.role or "",
        "RoleSessionName": run_id,
        "DurationSeconds": str(SESSION_SECONDS),
        **({"ExternalId": access.external_id} if access.external_id else {}),
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    try:
        answer = call(STS, urlencode(asked).encode(), headers, own_region(os.environ), TIMEOUT_SECONDS)
    except CallFailed as error:
        raise Unreachable(
            f"asked to assume {access.role} for bucket {access.bucket}: {first_line(error)}. Let the role trust the "
            "role of this stack's machines, and name it in the stack's context data_roles"
        ) from error
    found = ET.fromstring(answer)  # noqa: S314 - AWS's own answer; expat bounds expansion
    names = {
        "access_key": "AccessKeyId",
        "secret_key": "SecretAccessKey",
        "token": "SessionToken",
        "expiry_time": "Expiration",
    }
    return {name: found.findtext(f".//{{*}}{element}", "") for name, element in names.items()}


def _read(reference: str, *, is_process: bool) -> dict[str, str]:
    text = _from_aws(reference) if reference.startswith("arn:") else _from_here(reference, is_process=is_process)
    try:
        found = json.loads(text)
        keys = {"access_key": found["access_key_id"], "secret_key": found["secret_access_key"]}
    except (ValueError, TypeError, KeyError):
        raise Unreachable(
            f"the secret {reference} is not as it should be; keep JSON with access_key_id and secret_access_key in it"
        ) from None
    expires = datetime.now(UTC) + timedelta(seconds=SECRET_SECONDS)
    return {**keys, "token": "", "expiry_time": expires.isoformat()}


def _from_aws(reference: str) -> str:
    """Return the text of a secret (AWS Secrets Manager API reference, GetSecretValue)."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "secretsmanager.GetSecretValue"}
    body = json.dumps({"SecretId": reference}).encode()
    try:
        answer = call(SECRETS, body, headers, reference.split(":")[3], TIMEOUT_SECONDS)
    except CallFailed as error:
        raise Unreachable(
            f"asked for the secret {reference}: {first_line(error)}. Name it in the stack's context data_secrets"
        ) from error
    return str(json.loads(answer).get("SecretString", ""))


def _from_here(reference: str, *, is_process: bool, environ: Mapping[str, str] = os.environ) -> str:
    kind, _, name = reference.partition(":")
    if not is_process:
        raise Unreachable(f"keys are given as {kind}:..., which a machine has not; keep them in Secrets Manager")
    if kind == "env":
        if name not in environ:
            raise Unreachable(f"the variable {name}, which should hold the endpoint's keys, is not set")
        return environ[name]
    path = Path(name)
    try:
        if path.stat().st_mode & OTHERS:
            raise Unreachable(f"{path} holds keys and others may read it; chmod 600 it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, Unreachable):
            raise
        raise Unreachable(f"{path}, which should hold the endpoint's keys, cannot be read") from error
