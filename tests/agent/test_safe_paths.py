"""Paths from elsewhere stay below their root."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_agent.safe_paths import SafeRoot, UnsafePath

STEPS = st.one_of(st.sampled_from(["..", ".", "", "a", "b", "~", "link", "..."]), st.text(max_size=6))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "a//b", "", ".", "a/.", "a/", "a\nb", "a\x00b", "x" * 256]
)
def test_a_path_that_is_not_plain_and_relative_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UnsafePath):
        SafeRoot(tmp_path).place(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["out/x", "out"])
def test_no_symbolic_link_is_followed_or_replaced(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "out").symlink_to(outside)
    with pytest.raises(UnsafePath, match="symbolic link"):
        SafeRoot(root).place(path)
    assert list(outside.iterdir()) == []


def test_a_file_in_the_way_of_a_folder_and_a_folder_in_the_way_of_a_file_are_named(tmp_path: Path) -> None:
    root = SafeRoot(tmp_path)
    root.place("a").write_text("file")
    root.place("d/x")
    with pytest.raises(UnsafePath, match="goes through a, which is a file"):
        root.place("a/b")
    with pytest.raises(UnsafePath, match="is taken by a folder"):
        root.place("d")


@settings(max_examples=300, print_blob=True)
@given(st.lists(STEPS, min_size=1, max_size=5))
def test_whatever_is_accepted_is_below_the_root_and_reads_back_as_itself(steps: list[str]) -> None:
    path = "/".join(steps)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        try:
            target = SafeRoot(root).place(path)
        except (UnsafePath, UnicodeEncodeError):
            return
        target.write_text("x")
        assert str(target.resolve().relative_to(root)) == path
        assert [one.name for one in Path(folder).iterdir()] == ["root"]
