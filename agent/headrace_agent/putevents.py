"""Calls PutEvents: JSON 1.1 over HTTP, signed by botocore (EventBridge API reference, PutEvents)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from headrace_agent.aws_call import EVENTS, connect, machine_credentials, service_url
from headrace_agent.region import own_region

TIMEOUT_SECONDS = 5.0


class BusUnavailable(Exception):
    """The bus did not take the request; sending it again later is safe."""


def events_url(environ: Mapping[str, str]) -> str:
    """Return AWS_ENDPOINT_URL_EVENTBRIDGE, or the region's endpoint by botocore's own rules."""
    return service_url(EVENTS, environ)


class EventBus:
    """One event bus; `put` may be called from one thread at a time."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self.name = name
        self._url = events_url(environ)
        self._region = own_region(environ)
        self._resolver = machine_credentials()
        self._credentials: Credentials | None = None

    def put(self, entries: Sequence[Mapping[str, Any]]) -> tuple[str | None, ...]:
        """Send up to 10 entries. Return for each None when it was taken, else its error code.

        Raises BusUnavailable when the request as a whole failed.
        """
        body = json.dumps({"Entries": list(entries)}, separators=(",", ":")).encode()
        answer = self._post(body)
        results = answer.get("Entries", [])
        if len(results) != len(entries):
            raise BusUnavailable(f"the bus answered {len(results)} results for {len(entries)} entries")
        return tuple(result.get("ErrorCode") for result in results)

    def _post(self, body: bytes) -> dict[str, Any]:
        connection = connect(self._url, TIMEOUT_SECONDS)
        try:
            connection.request("POST", urlsplit(self._url).path or "/", body, self._headers(body))
            response = connection.getresponse()
            text = response.read(1024 * 1024)
        except (OSError, http.client.HTTPException) as error:
            raise BusUnavailable(f"{self._url}: {error!r}") from error
        finally:
            connection.close()
        return _decoded(response.status, text)

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSEvents.PutEvents"}
        request = AWSRequest(method="POST", url=self._url, data=body, headers=headers)
        SigV4Auth(self._current_credentials(), "events", self._region).add_auth(request)
        return dict(request.headers.items())

    def _current_credentials(self) -> Credentials:
        if self._credentials is None:
            self._credentials = self._resolver.load_credentials()
        if self._credentials is None:
            raise BusUnavailable("no AWS keys: none in the environment and none in the machine's metadata")
        return self._credentials


def _decoded(status: int, text: bytes) -> dict[str, Any]:
    if status != http.client.OK:
        raise BusUnavailable(f"the bus answered {status}: {text[:300].decode('utf-8', 'replace')}")
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise BusUnavailable(f"the bus answered no JSON: {text[:300]!r}") from error
    if not isinstance(answer, dict):
        raise BusUnavailable(f"the bus answered no object: {text[:300]!r}")
    return answer
