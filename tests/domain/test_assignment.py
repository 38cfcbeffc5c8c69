"""Objects become files safely or not at all, and files are shared out evenly."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.assignment import OpenKeys, assign, is_folder_marker, page_faults, path_faults, to_path
from headrace.domain.dataset import DatasetFile

SIZES = st.lists(st.integers(0, 10**12), max_size=60)
NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)
CLOSE_KEYS = st.lists(st.text(alphabet="ab/!", min_size=1, max_size=6), max_size=20, unique=True)


class Listed(NamedTuple):
    """One object of a listing."""

    key: str
    bytes: int = 1
    storage_class: str = "STANDARD"


def files(sizes: list[int]) -> list[DatasetFile]:
    return [DatasetFile(source=f"s3://b/{n}", path=f"{n}", bytes=size, etag="e") for n, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 12))
def test_every_file_goes_to_exactly_one_volume(sizes: list[int], volumes: int) -> None:
    given_files = files(sizes)
    shares = assign(given_files, volumes)
    assert len(shares) == volumes
    assert sorted((one for share in shares for one in share), key=lambda one: int(one.path)) == given_files


@given(SIZES, st.integers(1, 12))
def test_no_volume_holds_more_than_the_plan_counts_on(sizes: list[int], volumes: int) -> None:
    stored = [size + 4608 for size in sizes]
    loads = [sum(one.bytes + 4608 for one in share) for share in assign(files(sizes), volumes)]
    assert max(loads) * volumes <= sum(stored) + max(stored, default=0) * (volumes - 1)


def test_the_largest_files_are_placed_first() -> None:
    assert [[one.bytes for one in share] for share in assign(files([10**6, 10**6, 2 * 10**6]), 2)] == [
        [2 * 10**6],
        [10**6] * 2,
    ]


@given(SIZES, st.integers(1, 12), st.randoms(use_true_random=False))
def test_the_same_files_in_another_order_are_shared_the_same_way(
    sizes: list[int], volumes: int, chance: Random
) -> None:
    given_files = files(sizes)
    shuffled = chance.sample(given_files, len(given_files))
    assert assign(shuffled, volumes) == assign(given_files, volumes)


@given(st.integers(0, 60), st.integers(1, 12))
def test_empty_files_are_shared_by_number(count: int, volumes: int) -> None:
    numbers = [len(share) for share in assign(files([0] * count), volumes)]
    assert max(numbers) - min(numbers) <= 1


def test_files_need_a_volume() -> None:
    with pytest.raises(ValueError, match="at least one volume"):
        assign([], 0)


@given(st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_no_two_keys_become_the_same_path(names: list[str]) -> None:
    paths = [path for name in names if (path := path_or_none(f"set/{name}"))]
    assert len(set(paths)) == len(paths)


def path_or_none(key: str) -> str | None:
    try:
        return to_path(key, "set/")
    except ValueError:
        return None


@given(st.text(max_size=60))
def test_every_path_stays_below_its_root(key: str) -> None:
    path = path_or_none(f"set/{key}")
    if path is not None:
        assert not path.startswith("/")
        assert all(part not in ("", ".", "..") for part in path.split("/"))
        assert all(ord(letter) >= 32 for letter in path)
        assert path == key


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("set/../etc/passwd", "'..' between slashes"),
        ("set/a/./b", "'.' between slashes"),
        ("set//a", "two in a row"),
        ("set/a//b", "two in a row"),
        ("set/a/", "ends with a slash"),
        ("set/", "ends with a slash"),
        ("set/a\nb", "control character"),
        ("set/a\x00", "control character"),
        ("set/a\ud800", "control character"),
        ("set/" + "é" * 128, "more than 255 bytes between slashes"),
        ("set/" + "abcdefg/" * 600 + "x", "more than 4,000 bytes"),
        ("other/a", "is not below 'set/'"),
        ("set/.headrace-staging/a", "keeps for itself"),
    ],
)
def test_a_key_that_cannot_become_a_file_is_refused_with_the_reason(key: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".*") as refusal:
        to_path(key, "set/")
    assert said in str(refusal.value)
    assert said in path_faults([Listed(key, bytes=1)], "set/")[0]


@pytest.mark.parametrize("name", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_archived_object_is_found_before_anything_is_launched(name: str) -> None:
    assert path_faults([Listed("set/a", storage_class=name)], "set/") == (
        f"'set/a' is archived ({name}); restore it first",
    )


@pytest.mark.parametrize("name", ["STANDARD", "", "GLACIER_IR", "INTELLIGENT_TIERING", "ONEZONE_IA"])
def test_an_object_that_answers_at_once_is_fine(name: str) -> None:
    assert path_faults([Listed("set/a", storage_class=name)], "set/") == ()


def test_folder_markers_are_passed_over() -> None:
    markers = [Listed("set/", 0), Listed("set/a/", 0)]
    assert all(is_folder_marker(one) for one in markers)
    assert path_faults([*markers, Listed("set/a/b")], "set/") == ()


def test_a_file_that_is_also_a_folder_is_a_clash() -> None:
    found = path_faults([Listed("set/a/b"), Listed("set/a!"), Listed("set/a")], "set/")
    assert found == ("'set/a/b' needs a folder where the object 'set/a' is a file; rename one",)


@given(CLOSE_KEYS)
def test_clashes_are_those_that_comparing_all_pairs_finds(keys: list[str]) -> None:
    objects = [Listed(key) for key in keys]
    clashing = {key for key in keys if any(key.startswith(f"{other}/") for other in keys)}
    said = {key for key in keys if any(fault.startswith(f"{key!r} needs") for fault in path_faults(objects, ""))}
    assert said == {key for key in clashing if path_faults([Listed(key)], "") == ()}


def test_what_is_remembered_between_pages_does_not_grow_with_the_listing() -> None:
    apart = [Listed(f"set/{n:06d}/a") for n in range(5_000)]
    within = [Listed("set/" + "a" * n) for n in range(1, 200)]
    assert [len(page_faults(listed, "set/", OpenKeys())[1].keys) for listed in (apart, within)] == [1, 1]


@given(CLOSE_KEYS, st.integers(1, 5))
def test_a_listing_in_pages_has_the_faults_of_the_whole(keys: list[str], page: int) -> None:
    objects = [Listed(key) for key in sorted(keys)]
    before, found = OpenKeys(), list[str]()
    for start in range(0, len(objects), page):
        faults, before = page_faults(objects[start : start + page], "", before)
        found += faults
    assert tuple(found) == path_faults(objects, "")
