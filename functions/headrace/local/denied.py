"""Object storage that refuses the buckets of a declared fault."""

from __future__ import annotations

from collections.abc import Callable

from headrace.domain.errors import AccessDenied
from headrace.ports import ObjectInfo, ObjectPage, Objects


class DenyingObjects:
    """The Objects port of another adapter, with AccessDenied on every call for a denied bucket."""

    def __init__(self, objects: Objects, is_denied: Callable[[str], bool]) -> None:
        self._objects = objects
        self._is_denied = is_denied

    def get(self, bucket: str, key: str) -> bytes:
        """Return the whole object."""
        return self._of(bucket).get(bucket, key)

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write the whole object."""
        self._of(bucket).put(bucket, key, body)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """Return size and ETag."""
        return self._of(bucket).head(bucket, key)

    def delete(self, bucket: str, key: str) -> None:
        """Remove the object."""
        self._of(bucket).delete(bucket, key)

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return one page of the listing."""
        return self._of(bucket).page(bucket, prefix, token, limit)

    def abort_uploads(self, bucket: str, prefix: str) -> int:
        """Remove what was half uploaded."""
        return self._of(bucket).abort_uploads(bucket, prefix)

    def try_upload(self, bucket: str, key: str) -> None:
        """Begin an upload and abort it."""
        self._of(bucket).try_upload(bucket, key)

    def _of(self, bucket: str) -> Objects:
        if self._is_denied(bucket):
            raise AccessDenied(f"bucket {bucket} refuses every call (declared fault)")
        return self._objects
