"""Knows when an ETag is the MD5 of the bytes, and when it cannot be."""

from __future__ import annotations

import hashlib
import http.client
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore

if TYPE_CHECKING:
    from obstore.store import S3Store

PLAIN_MD5 = re.compile(r"^[0-9a-f]{32}$")
READ_BYTES = 1024 * 1024


def looks_like_md5(etag: str) -> bool:
    """Tell whether the ETag has the form of an object written in one part."""
    return bool(PLAIN_MD5.match(etag))


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def is_encrypted_by_key_service(store: S3Store, key: str) -> bool:
    """Tell whether S3 says that the object is encrypted with KMS or a customer key: its ETag is then no MD5.

    Source: "Object" in the Amazon S3 API reference, element ETag. obstore shows no such header, so the request is its
    signed address sent by hand. Raises OSError when S3 does not answer.
    """
    parts = urlsplit(obstore.sign(store, "HEAD", key, timedelta(seconds=60)))
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=10)
    try:
        connection.request("HEAD", f"{parts.path}?{parts.query}")
        headers = connection.getresponse().headers
    finally:
        connection.close()
    encryption = headers.get("x-amz-server-side-encryption", "")
    return encryption.startswith("aws:kms") or "x-amz-server-side-encryption-customer-algorithm" in headers
