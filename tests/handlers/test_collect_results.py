"""CollectResults believes a listing that agrees, and asks for each object that the listing does not show as saved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.domain.errors import AccessDenied, ResultsIncomplete
from headrace.domain.results import ResultFile, ResultsManifest, ResultsPart
from headrace.handlers import collect_results
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import ObjectInfo, ObjectPage
from tests.simulated_runs import job, only_run, simulated_site

BUCKET, PREFIX = "experiments", "collected/"
PART_FILES = 3


class Ended:
    """A run whose results manifests a test writes anew; `calls` are those for the results bucket."""

    def __init__(self, site: SimulatedSite) -> None:
        self.site = site
        self.calls: list[str] = []
        self.page_keys = 1000
        self.may_list = True
        self.row = only_run(site)
        self.objects: MemoryObjects = site.objects
        self._head, self._page = site.objects.head, site.objects.page

    def head(self, bucket: str, key: str) -> ObjectInfo:
        self.calls.append(f"head {key}")
        return self._head(bucket, key)

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        self.calls.append("page")
        if not self.may_list:
            raise AccessDenied("no listing")
        return self._page(bucket, prefix, token, min(limit, self.page_keys))

    def save(self, names: list[str]) -> None:
        """Save an object for each name, and a manifest that lists them in parts."""
        files = []
        for name in names:
            body = name.encode()
            self.objects.put(BUCKET, PREFIX + name, body)
            etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
            files.append(ResultFile(path=name, key=PREFIX + name, bytes=len(body), sha256="0" * 64, etag=etag))
        files.sort(key=lambda file: file.key)
        node = next(one for one in self.site.cloud.runs.items(self.row.run_id, "node") if one["job"].get("manifest"))
        parts = []
        for start in range(0, len(files), PART_FILES):
            parts.append(f"collected/part-{start:05d}.json")
            part = ResultsPart(files=tuple(files[start : start + PART_FILES]))
            self._write(parts[-1], part.model_dump_json())
        manifest = ResultsManifest(
            run_id=self.row.run_id,
            attempt=1,
            node_id=node["node_id"],
            bucket=BUCKET,
            prefix=PREFIX,
            files=len(files),
            bytes=sum(file.bytes for file in files),
            parts=tuple(parts),
            written_at="2026-12-01T00:00:00Z",
        )
        self._write(node["job"]["manifest"], manifest.model_dump_json())

    def collect(self) -> list[dict[str, Any]]:
        """Return the cursors of all slices up to the last."""
        self.site.objects.head, self.site.objects.page = self.head, self.page  # type: ignore[method-assign]
        cursors: list[dict[str, Any]] = [{}]
        while not cursors[-1].get("is_done"):
            request = {"run_id": self.row.run_id, "cursor": cursors[-1]}
            cursors.append(collect_results.step(request, self.site.cloud)["cursor"])
        return cursors[1:]

    def _write(self, name: str, text: str) -> None:
        self.objects.put(SETTINGS.run_bucket, self.row.prefix + name, text.encode())


@pytest.fixture
def ended() -> Iterator[Ended]:
    with simulated_site() as site:
        site.run(job())
        yield Ended(site)


NAMES = [f"{number:02d}.bin" for number in range(8)]


@pytest.mark.parametrize("page_keys", [1, 2, 3, 4, 7, 1000])
def test_a_listing_that_agrees_is_all_that_is_asked_for(ended: Ended, page_keys: int) -> None:
    ended.page_keys = page_keys
    ended.save(NAMES)
    cursors = ended.collect()
    assert (cursors[-1]["files"], cursors[-1]["bytes"]) == (8, 48)
    assert set(ended.calls) == {"page"}
    assert len(ended.calls) <= 2 * len(NAMES)


def test_a_slice_is_bounded_and_goes_on_where_the_last_ended(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_results, "PARTS_PER_SLICE", 1)
    ended.page_keys = 3
    ended.save(NAMES)
    assert [cursor["files"] for cursor in ended.collect()] == [3, 6, 8]
    assert ended.calls == ["page"] * 3


@pytest.mark.parametrize("page_keys", [2, 1000])
def test_keys_of_all_scripts_and_of_others_in_between_do_no_harm(ended: Ended, page_keys: int) -> None:
    ended.page_keys = page_keys
    for number in range(9):
        ended.objects.put(BUCKET, f"{PREFIX}0{number}", b"a stranger's")
    ended.save([*NAMES, "é", "z", "日本", "\U0001f600"])
    assert ended.collect()[-1]["files"] == 12


def test_objects_that_no_listing_shows_in_time_are_asked_for_one_by_one(ended: Ended) -> None:
    ended.page_keys = 1
    for number in range(9):
        ended.objects.put(BUCKET, f"{PREFIX}!{number}", b"a stranger's")
    ended.save(NAMES)
    assert ended.collect()[-1]["files"] == 8
    assert f"head {PREFIX}00.bin" in ended.calls


def test_a_role_that_may_not_list_asks_for_each(ended: Ended) -> None:
    ended.may_list = False
    ended.save(NAMES)
    ended.collect()
    assert [call for call in ended.calls if call != "page"] == [f"head {PREFIX}{name}" for name in NAMES]


def test_what_is_missing_or_another_is_named(ended: Ended) -> None:
    ended.save(NAMES)
    ended.objects.delete(BUCKET, f"{PREFIX}01.bin")
    ended.objects.put(BUCKET, f"{PREFIX}02.bin", b"other!")
    with pytest.raises(ResultsIncomplete) as caught:
        ended.collect()
    assert "2 of 3 files" in str(caught.value)
    assert "collected/01.bin is missing" in str(caught.value)
    assert "collected/02.bin has 6 bytes and ETag " in str(caught.value)
