"""Answers of AWS as they were published, given to real clients: for what no server here imitates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.stub import ANY, Stubber

from headrace.aws.clients import Clients
from tests.aws.moto_stack import session

__all__ = ["ANY", "NOW", "FixedClock", "answering", "recorded", "refusal"]

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class FixedClock:
    """Always the same instant."""

    def now(self) -> datetime:
        return NOW


@contextmanager
def recorded(service: str) -> Iterator[tuple[Any, Stubber]]:
    """Yield a client and what answers it; every answer must be asked for, and nothing else may be."""
    client = getattr(Clients(session()), service)
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


def refusal(code: str, message: str = "as recorded") -> dict[str, str]:
    """Return an entry of CreateFleet's errors."""
    return {"ErrorCode": code, "ErrorMessage": message, "Lifecycle": "on-demand"}


class _Body:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


@contextmanager
def answering(service: str, answer: Callable[[int], tuple[int, str]]) -> Iterator[tuple[Any, list[int]]]:
    """Yield a client whose n-th request over the wire gets this status and body, and the numbers asked so far.

    Unlike `recorded`, this is below the client's own retries.
    """
    client = getattr(Clients(session()), service)
    asked: list[int] = []

    def send(request: Any, **_: Any) -> AWSResponse:
        asked.append(len(asked))
        status, body = answer(asked[-1])
        return AWSResponse(request.url, status, HTTPHeaders(), _Body(body.encode()))

    client.meta.events.register("before-send", send)
    # Between attempts a client sleeps, and in adaptive mode it also waits for its turn.
    with patch("botocore.endpoint.time.sleep"), patch("botocore.retries.bucket.TokenBucket.acquire"):
        yield client, asked
