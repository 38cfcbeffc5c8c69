"""Reads one object, or one range of it, into an open file, and refuses what is not the object that was listed."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import obstore

from headrace_agent.etags import is_encrypted_by_key_service, looks_like_md5
from headrace_agent.http_connection import Answer, BadAnswer, Connection, length_of
from headrace_agent.s3 import plain_etag

if TYPE_CHECKING:
    from obstore.store import S3Store

OK, PARTIAL = 200, 206
DENIED, ABSENT, CHANGED, UNSATISFIABLE = (401, 403), 404, 412, 416
BUSY = (429, 503)
SIGNED_FOR = timedelta(hours=1)
"""S3 looks at this when a request begins; how long the answer takes does not matter."""

ERROR_CODE = re.compile(rb"<Code>([A-Za-z]{1,64})</Code>")
HEADER_SAFE = re.compile(r"^[!#-~]+$")
TOTAL_BYTES = re.compile(r"^bytes \d+-\d+/(\d+)$")


class Unlike(Exception):
    """The bytes read are not the object's, or the endpoint failed; reading again may help."""


class Busy(Exception):
    """The endpoint asks to be asked less often (503 Slow Down, 429)."""


class ObjectUnreadable(Exception):
    """The object is not the one that was listed, or may not be read; reading again cannot help."""


class RangesRefused(Exception):
    """The endpoint does not answer parts of an object as S3 does; it may still answer whole ones."""


class Source(NamedTuple):
    """One object as it was listed; an empty ETag matches any."""

    store: S3Store
    key: str
    bytes: int
    etag: str
    is_hashed: bool = False
    """Whether the bytes are compared with an ETag that is their MD5, however they come."""


class Span(NamedTuple):
    """A range of an object: from `start` up to, not including, `end`."""

    start: int
    end: int


class Target(NamedTuple):
    """An open file, and the lock that is held while one of its streams writes, where there are several.

    A file system lets one writer at a time into a file anyway; those that wait for it spin, those for a lock sleep.
    """

    descriptor: int
    writing: AbstractContextManager[object] = nullcontext()


class Received(NamedTuple):
    """What an answer said besides its bytes; `version` is empty where the bucket keeps none.

    `must_match_etag` tells whether the ETag is the MD5 of the whole object and is to be compared; `md5` is that of the
    bytes that came then, and None for a span.
    """

    version: str
    must_match_etag: bool
    md5: str | None


def download(connection: Connection, source: Source, target: Target, span: Span | None = None) -> Received:
    """Write the object, or a span of it, where it belongs in the file.

    An ETag that is an MD5 is compared where the source asks for it, and where the bytes came over a wire in the clear:
    TCP's own sum of 16 bits lets errors through. TLS authenticates every byte, so that MD5, a core for 0.9 GB/s, would
    say nothing new.

    Raises Unlike, Busy, ObjectUnreadable, RangesRefused, OSError, and what obstore raises when it cannot sign.
    """
    answer = connection.get(urlsplit(obstore.sign(source.store, "GET", source.key, SIGNED_FOR)), _headers(source, span))
    try:
        _check_status(source, answer, connection, is_range=span is not None)
        _check_listed(source, answer, span)
    except Exception:
        connection.close()
        raise
    must_match_etag = (
        (source.is_hashed or not connection.is_guarded)
        and looks_like_md5(source.etag)
        and not is_encrypted_by_key_service(answer.headers)
    )
    md5 = hashlib.md5(usedforsecurity=False) if must_match_etag and span is None else None
    offset = span.start if span else 0
    for piece in connection.body(answer):
        with target.writing:
            _write(target.descriptor, piece, offset)
        if md5:
            md5.update(piece)
        offset += len(piece)
    version = answer.headers.get("x-amz-version-id", "")
    return Received("" if version == "null" else version, must_match_etag, md5.hexdigest() if md5 else None)


def _headers(source: Source, span: Span | None) -> dict[str, str]:
    """Ask for that very object, so that one that changed is refused before any of its bytes comes."""
    headers = {"If-Match": f'"{source.etag}"'} if HEADER_SAFE.match(source.etag) else {}
    return headers | ({"Range": f"bytes={span.start}-{span.end - 1}"} if span else {})


def _check_status(source: Source, answer: Answer, connection: Connection, *, is_range: bool) -> None:
    status = answer.status
    if status == OK and is_range:
        raise RangesRefused("the endpoint answers a range with the whole object")
    if status in (OK, PARTIAL):
        return
    code = ERROR_CODE.search(connection.start_of_body(answer))
    said = f"{status} {code[1].decode()}" if code else str(status)
    if status in BUSY:
        raise Busy(f"the endpoint answered {said}")
    if reason := _final_reason(source, status, said):
        raise ObjectUnreadable(reason)
    raise Unlike(f"the endpoint answered {said}")


def _final_reason(source: Source, status: int, said: str) -> str | None:
    if "InvalidObjectState" in said:
        return "it is archived; restore it first"
    if status in DENIED and "RequestTimeTooSkewed" not in said:
        return f"this machine's role may not read it ({said})"
    reasons = {
        ABSENT: "it is no longer there",
        CHANGED: f"it changed since it was listed (its ETag is not {source.etag} any more: {said})",
        UNSATISFIABLE: f"it changed since it was listed (it has less than {source.bytes} bytes now: {said})",
    }
    return reasons.get(status)


def _check_listed(source: Source, answer: Answer, span: Span | None) -> None:
    etag = plain_etag(answer.headers.get("etag"))
    if source.etag and etag and etag != source.etag:
        raise ObjectUnreadable(f"it changed since it was listed (ETag {source.etag}, now {etag})")
    size_bytes = _object_bytes(answer)
    if size_bytes != source.bytes:
        raise ObjectUnreadable(f"it changed since it was listed ({source.bytes} bytes, now {size_bytes})")
    asked = span.end - span.start if span else source.bytes
    if length_of(answer) != asked:
        raise Unlike(f"{length_of(answer)} bytes are announced, and {asked} were asked for")


def _object_bytes(answer: Answer) -> int:
    if answer.status == OK:
        return length_of(answer)
    total = TOTAL_BYTES.match(answer.headers.get("content-range", ""))
    if total is None:
        raise BadAnswer("a part of an object came without its place in the whole (Content-Range)")
    return int(total[1])


def _write(descriptor: int, piece: memoryview, offset: int) -> None:
    while piece:
        written = os.pwrite(descriptor, piece, offset)
        piece, offset = piece[written:], offset + written
