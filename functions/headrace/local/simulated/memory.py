"""Object storage and the run table in memory."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping

from headrace.domain.access import BucketAccess
from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.local.asl.payloads import read_back
from headrace.local.simulated.watcher import Watcher
from headrace.ports import Json, ObjectInfo, ObjectPage

_NOTHING: Mapping[str, dict[str, Json]] = {}
ARCHIVED = "GLACIER"


class MemoryObjects:
    """The Objects port in a dictionary; `denied_buckets` answer 403 to everything, a page has `page_keys` at most."""

    def __init__(
        self, denied_buckets: frozenset[str] = frozenset(), watcher: Watcher | None = None, page_keys: int = 1000
    ) -> None:
        self.half_uploads: dict[tuple[str, str], bytes] = {}
        """Parts of uploads that were never completed; no listing of objects shows them."""
        self.foreign: dict[str, str] = {}
        """Buckets that are reached only as that role, or at that endpoint."""
        self.reached = ""
        """The one of them that is reached from here."""
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._archived: set[tuple[str, str]] = set()
        self._page_keys = page_keys
        self._denied_buckets = denied_buckets
        self._watcher = watcher or Watcher()

    def get(self, bucket: str, key: str) -> bytes:
        """Return the whole object."""
        return self._find(bucket, key)

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write the whole object."""
        self._admit(bucket)
        self._bodies[bucket, key] = body
        self._archived.discard((bucket, key))
        self._watcher.stored(bucket, key, body)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """Return size and ETag (the MD5 of the body, as S3 gives it for one part)."""
        return self._info(bucket, key, self._find(bucket, key))

    def abort_uploads(self, bucket: str, prefix: str) -> int:
        """Forget every half upload below the prefix; return how many there were."""
        self._admit(bucket)
        found = [(owner, key) for owner, key in self.half_uploads if owner == bucket and key.startswith(prefix)]
        for place in found:
            del self.half_uploads[place]
        return len(found)

    def keys(self, bucket: str) -> list[str]:
        """Return every key of the bucket, in order."""
        return sorted(key for owner, key in self._bodies if owner == bucket)

    def archive(self, bucket: str, key: str) -> None:
        """Move the object to a class from which it must be restored before it can be read."""
        self._archived.add((bucket, key))

    def try_upload(self, bucket: str, key: str) -> None:  # noqa: ARG002 - a bucket takes every key
        """Begin an upload and abort it."""
        self._admit(bucket)

    def objects(self, access: BucketAccess, run_id: str) -> MemoryObjects:  # noqa: ARG002 - all runs are alike
        """Return the same buckets as they are reached from here with that access: the Elsewhere port."""
        way = access.role or access.endpoint
        if self.foreign.get(access.bucket) != way:
            raise AccessDenied(f"bucket {access.bucket!r} is not reached as {way}")
        reached = copy.copy(self)
        reached.reached = access.bucket
        return reached

    def upload_half(self, bucket: str, key: str, body: bytes) -> None:
        """Send the first half of the object's parts and no more."""
        self._admit(bucket)
        self.half_uploads[bucket, key] = body[: len(body) // 2]

    def delete(self, bucket: str, key: str) -> None:
        """Remove the object if it is there."""
        self._admit(bucket)
        self._bodies.pop((bucket, key), None)
        self._watcher.removed(bucket, key)

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return the keys after `token`, at most `limit` of them, in order."""
        self._admit(bucket)
        limit = min(limit, self._page_keys)
        keys = sorted(key for owner, key in self._bodies if owner == bucket and key.startswith(prefix))
        keys = [key for key in keys if token is None or key > token]
        objects = tuple(self._info(bucket, key, self._bodies[bucket, key]) for key in keys[:limit])
        return ObjectPage(objects, keys[limit - 1] if len(keys) > limit else None)

    def _info(self, bucket: str, key: str, body: bytes) -> ObjectInfo:
        storage_class = ARCHIVED if (bucket, key) in self._archived else "STANDARD"
        return ObjectInfo(key, len(body), hashlib.md5(body, usedforsecurity=False).hexdigest(), storage_class)

    def _find(self, bucket: str, key: str) -> bytes:
        self._admit(bucket)
        try:
            return self._bodies[bucket, key]
        except KeyError:
            raise ObjectMissing(f"s3://{bucket}/{key} does not exist") from None

    def _admit(self, bucket: str) -> None:
        if bucket in self.foreign and bucket != self.reached:
            raise AccessDenied(f"bucket {bucket!r} is another account's and answered 403")
        if bucket in self._denied_buckets:
            raise AccessDenied(f"bucket {bucket!r} answered 403")


class MemoryRuns:
    """The Runs port in a dictionary; what is written and what is read are copies, so nobody shares one by accident."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], dict[str, dict[str, Json]]] = {}

    def insert(self, run_id: str, kind: str, name: str, item: Mapping[str, Json]) -> bool:
        """Write a new item; return False when the key is taken."""
        items = self._items.setdefault((run_id, kind), {})
        if name in items:
            return False
        items[name] = self._kept(read_back(item))
        return True

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Json] | None:
        """Return a copy of the item, or None."""
        item = self._items.get((run_id, kind), _NOTHING).get(name)
        return None if item is None else self._copied(item)

    def update(
        self, run_id: str, kind: str, name: str, changes: Mapping[str, Json], expecting: Mapping[str, Json]
    ) -> bool:
        """Set fields if the item exists and has the expected ones."""
        item = self._items.get((run_id, kind), _NOTHING).get(name)
        if item is None or any(item.get(field) != value for field, value in expecting.items()):
            return False
        self._items[run_id, kind][name] = self._kept({**item, **read_back(changes)})
        return True

    def delete(self, run_id: str, kind: str, name: str) -> None:
        """Remove the item if it is there."""
        self._items.get((run_id, kind), {}).pop(name, None)

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Json], ...]:
        """Return copies of every item of the kind, ordered by name."""
        items = self._items.get((run_id, kind), _NOTHING)
        return tuple([self._copied(items[name]) for name in sorted(items)])

    def run_ids(self) -> Iterator[str]:
        """Yield the ids that have a run row, newest first."""
        return (run_id for run_id, kind in reversed(list(self._items)) if kind == "run")

    def _kept(self, item: dict[str, Json]) -> dict[str, Json]:
        """Return what stands in the table for a new version of an item, which nothing changes from now on."""
        return item

    def _copied(self, item: dict[str, Json]) -> dict[str, Json]:
        """Return what a reader is given of an item."""
        copy: dict[str, Json] = read_back(item)
        return copy
