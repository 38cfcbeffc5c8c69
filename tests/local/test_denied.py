"""A denied bucket refuses every call, and no other bucket is touched by it."""

from __future__ import annotations

import pytest

from headrace.domain.errors import AccessDenied
from headrace.local.denied import DenyingObjects
from headrace.local.simulated.memory import MemoryObjects


def test_every_call_for_a_denied_bucket_is_refused() -> None:
    objects = DenyingObjects(MemoryObjects(), lambda bucket: bucket == "closed")
    for call in (
        lambda: objects.get("closed", "k"),
        lambda: objects.put("closed", "k", b""),
        lambda: objects.head("closed", "k"),
        lambda: objects.delete("closed", "k"),
        lambda: objects.page("closed", "k"),
    ):
        with pytest.raises(AccessDenied, match="bucket closed refuses every call"):
            call()


def test_other_buckets_work_as_ever() -> None:
    objects = DenyingObjects(MemoryObjects(), lambda bucket: bucket == "closed")
    objects.put("open", "k", b"1")
    assert objects.get("open", "k") == b"1"
    assert objects.head("open", "k").bytes == 1
    assert [one.key for one in objects.page("open", "").objects] == ["k"]
    objects.delete("open", "k")
    assert objects.page("open", "").objects == ()
