"""A local folder is listed as the bucket that it becomes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.client.folder_files import list_folder
from headrace.client.places import BadPlace


def test_files_are_listed_in_the_order_of_their_keys_as_s3_does(tmp_path: Path) -> None:
    for path in ("b/1", "b-a", "b/0", "ä", "a"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
    listed = list_folder(tmp_path)
    assert [one.key for one in listed] == ["a", "b-a", "b/0", "b/1", "ä"]
    assert [one.bytes for one in listed] == [1, 3, 3, 3, 2]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "blob").write_text("12345")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").symlink_to(tmp_path / "store" / "blob")
    (tmp_path / "data" / "folder").symlink_to(tmp_path / "store")
    assert [(one.key, one.bytes) for one in list_folder(tmp_path / "data")] == [("file", 5), ("folder/blob", 5)]


def test_special_files_are_no_objects(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list_folder(tmp_path) == []


@pytest.mark.parametrize("target", [".", "..", "below"])
def test_a_link_that_leads_in_circles_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "data" / "below" / "circle").symlink_to(tmp_path / "data" / target)
    with pytest.raises(BadPlace, match=r"the link .* leads back to"):
        list_folder(tmp_path / "data")


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(BadPlace, match="leads nowhere; remove it or restore"):
        list_folder(tmp_path)
