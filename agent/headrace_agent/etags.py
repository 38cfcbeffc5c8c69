"""Knows when an ETag is the MD5 of the bytes, and when it cannot be."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

PLAIN_MD5 = re.compile(r"^[0-9a-f]{32}$")


def looks_like_md5(etag: str) -> bool:
    """Tell whether the ETag has the form of an object written in one part."""
    return bool(PLAIN_MD5.match(etag))


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def is_encrypted_by_key_service(headers: Mapping[str, str]) -> bool:
    """Tell whether an answer's headers say that the object is encrypted with KMS or a customer key.

    Its ETag is then no MD5. Source: "Object" in the Amazon S3 API reference, element ETag.
    """
    encryption = headers.get("x-amz-server-side-encryption", "")
    return encryption.startswith("aws:kms") or "x-amz-server-side-encryption-customer-algorithm" in headers
