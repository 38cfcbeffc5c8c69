"""Calls services of AWS besides S3: signed by botocore, sent by the standard library, at little memory."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import (
    ContainerProvider,
    CredentialResolver,
    EnvProvider,
    InstanceMetadataFetcher,
    InstanceMetadataProvider,
)
from botocore.endpoint_provider import EndpointProvider
from botocore.loaders import Loader

from headrace_agent.http_connection import tls
from headrace_agent.region import own_region

ANSWER_BYTES_MAX = 1024 * 1024


class Service(NamedTuple):
    """One service: botocore's name for it, and the end of the variable that names another endpoint."""

    name: str
    variable: str


EVENTS, STS, SECRETS = (
    Service("events", "EVENTBRIDGE"),
    Service("sts", "STS"),
    Service("secretsmanager", "SECRETS_MANAGER"),
)


class CallFailed(OSError):
    """A service did not do what was asked; the text says what it answered."""


def service_url(service: Service, environ: Mapping[str, str], region: str | None = None) -> str:
    """Return AWS_ENDPOINT_URL_<service>, or the region's own endpoint by botocore's rules."""
    if given := environ.get(f"AWS_ENDPOINT_URL_{service.variable}"):
        return given
    loader = Loader()
    rules = loader.load_service_model(service.name, "endpoint-rule-set-1")
    provider = EndpointProvider(rules, loader.load_data("partitions"))
    regional = {"UseGlobalEndpoint": False} if service is STS else {}
    where = {"Region": region or own_region(environ), "UseDualStack": False, "UseFIPS": False}
    return str(provider.resolve_endpoint(**where, **regional).url)


def machine_credentials() -> CredentialResolver:
    """Return where keys come from: the environment, a container's address, or the instance's metadata."""
    fetcher = InstanceMetadataFetcher(timeout=1, num_attempts=3, env=dict(os.environ))
    return CredentialResolver([EnvProvider(), ContainerProvider(), InstanceMetadataProvider(fetcher)])


def connect(url: str, timeout_seconds: float) -> http.client.HTTPConnection:
    """Return a connection that is made with the first request."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.netloc, timeout=timeout_seconds, context=tls())
    return http.client.HTTPConnection(parts.netloc, timeout=timeout_seconds)


def call(service: Service, body: bytes, headers: Mapping[str, str], region: str, timeout_seconds: float) -> bytes:
    """Post a request with this machine's own keys; return the text of the answer. Raises CallFailed."""
    keys = machine_credentials().load_credentials()
    if keys is None:
        raise CallFailed("no AWS keys: none in the environment and none in the machine's metadata")
    url = service_url(service, os.environ, region)
    request = AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
    SigV4Auth(keys, service.name, region).add_auth(request)
    connection = connect(url, timeout_seconds)
    try:
        connection.request("POST", urlsplit(url).path or "/", body, dict(request.headers.items()))
        response = connection.getresponse()
        text = response.read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise CallFailed(f"{url}: {error!r}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise CallFailed(f"{url} answered {response.status}: {text[:300].decode('utf-8', 'replace')}")
    return text
