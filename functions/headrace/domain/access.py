"""How a bucket is reached that is not ours: as a role of its own account, or at an S3 that is not AWS's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from headrace.domain.errors import AccessDenied
from headrace.domain.model import Contract, Model

ROLE_ARN = re.compile(r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$", re.ASCII)
SECRET_ARN = re.compile(
    r"^arn:(aws|aws-cn|aws-us-gov):secretsmanager:[a-z0-9-]{1,32}:[0-9]{12}:secret:[\w/+=.@-]{1,512}$", re.ASCII
)
LOCAL_SECRET = re.compile(r"^(env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:[^\x00-\x1f\x7f{}]{1,1000})$")
HOST = re.compile(r"^([a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$")
LOOPBACK = ("127.0.0.1", "localhost")
NOT_INHERITED = ("AWS_", "HEADRACE_", "RCLONE_")
"""Beginnings of variables that the machines of a run on this machine do not inherit."""


def _role(text: str) -> str:
    if not ROLE_ARN.match(text):
        raise ValueError(f"{text!r} is not the ARN of a role; write arn:aws:iam::<12 digits>:role/<name>")
    return text


def _secret(text: str) -> str:
    if not SECRET_ARN.match(text) and not LOCAL_SECRET.match(text):
        raise ValueError(
            "is not a reference to a secret; write arn:aws:secretsmanager:<region>:<account>:secret:<name> on AWS, and "
            "env:VARIABLE or file:PATH on one machine"
        )
    if text.startswith("env:") and text.removeprefix("env:").startswith(NOT_INHERITED):
        raise ValueError(
            f"names a variable that begins with one of {', '.join(NOT_INHERITED)}, which machines do not inherit; "
            "choose another name"
        )
    return text


def _endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, is_whole = parts.hostname or "", text == f"{parts.scheme}://{parts.netloc}"
        is_plain = is_whole and parts.netloc == host + (f":{parts.port}" if parts.port else "")
    except ValueError:
        host, is_plain, parts = "", False, urlsplit("")
    if not is_plain or not HOST.match(host) or parts.scheme not in ("https", "http"):
        raise ValueError(f"{text!r} is not the address of an S3; write https://host or https://host:port, no path")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise ValueError(f"{text!r} would send keys and data in the clear; write https:// (http is for 127.0.0.1 only)")
    return text


RoleArn = Annotated[str, Field(max_length=600), AfterValidator(_role)]
ExternalId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_+=,.@:/-]{2,1224}$")]
"""What the other account asks of whoever assumes its role (IAM API reference, AssumeRole, ExternalId)."""
SecretReference = Annotated[str, Field(max_length=1100), AfterValidator(_secret)]
Endpoint = Annotated[str, Field(max_length=300), AfterValidator(_endpoint)]
SigningRegion = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]


class Access(Model):
    """By what right a bucket is reached; without any of it, by that of headrace's own roles."""

    role: RoleArn | None = None
    """A role of the bucket's account, which headrace's roles may assume."""
    external_id: ExternalId | None = None
    endpoint: Endpoint | None = None
    """An S3 that is not AWS's; its buckets are addressed by path."""
    credentials: SecretReference | None = None
    """The secret that holds the endpoint's keys, as JSON with `access_key_id` and `secret_access_key`."""
    signing_region: SigningRegion | None = None
    """The region that requests to the endpoint are signed for; `us-east-1` where it does not matter."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.role and self.endpoint:
            raise ValueError("'role' is of AWS and 'endpoint' is not; keep the one that holds the bucket")
        if self.external_id and not self.role:
            raise ValueError("'external_id' goes with the 'role' that asks for it; add the role")
        if self.endpoint and not self.credentials:
            raise ValueError("an 'endpoint' needs 'credentials', a reference to the secret with its keys; add it")
        if not self.endpoint and (self.credentials or self.signing_region):
            raise ValueError("'credentials' and 'signing_region' go with an 'endpoint' that is not AWS's; add it")
        return self

    @property
    def is_given(self) -> bool:
        """Tell whether the bucket is not reached as ours are."""
        return bool(self.role or self.endpoint)


class BucketAccess(Contract):
    """How one bucket is reached: what a job says of it, without any key."""

    bucket: str
    role: str | None = None
    external_id: str | None = None
    endpoint: str | None = None
    credentials: str | None = None
    signing_region: str | None = None

    @property
    def region(self) -> str:
        """Return the region that requests to an endpoint are signed for."""
        return self.signing_region or "us-east-1"

    @property
    def needs_aws(self) -> bool:
        """Tell whether a role or a secret of AWS is in the way, for which one needs credentials of AWS oneself."""
        return bool(self.role) or (self.credentials or "").startswith("arn:")

    @property
    def is_loopback(self) -> bool:
        """Tell whether the endpoint is on the machine that asks."""
        return urlsplit(self.endpoint or "").hostname in LOOPBACK


def bucket_access(address: str, given: Access) -> BucketAccess:
    """Return how the bucket of an address `s3://bucket/...` is reached."""
    found = {name: getattr(given, name) for name in Access.model_fields}
    return BucketAccess(bucket=address.removeprefix("s3://").partition("/")[0], **found)


@dataclass(frozen=True)
class Keys:
    """What an endpoint knows who asks by; never written down."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


def parse_keys(text: str, reference: str) -> Keys:
    """Return the keys in a secret's text. Raises AccessDenied, which shows nothing of the text."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    names = ("access_key_id", "secret_access_key")
    values = [found.get(name) if isinstance(found, dict) else None for name in names]
    if not all(isinstance(value, str) and value for value in values):
        raise AccessDenied(
            f"the secret {reference} is not as it should be; keep JSON in it: "
            '{"access_key_id": "...", "secret_access_key": "..."}'
        )
    return Keys(str(values[0]), str(values[1]))
