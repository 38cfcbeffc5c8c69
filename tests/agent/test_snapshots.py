"""A result is frozen for its upload where the file system shares blocks, and read in place where it does not."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace_agent.snapshots import Snapshots


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a fresh XFS; skip where this user cannot mount one."""
    image, folder = tmp_path / "image", tmp_path / "xfs"
    folder.mkdir()
    with image.open("wb") as stream:
        stream.truncate(320 * 1024 * 1024)
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("needs root and mkfs.xfs")
    subprocess.run(["mkfs.xfs", "-q", str(image)], check=True, capture_output=True)
    mounted = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_xfs_a_later_write_does_not_reach_the_snapshot(xfs: Path) -> None:
    (xfs / "a").write_bytes(b"old" * 5000)
    with Snapshots(xfs / "snapshots").of(xfs, "a") as snapshot:
        (xfs / "a").write_bytes(b"new")
        assert snapshot.is_frozen
        assert snapshot.path.read_bytes() == b"old" * 5000
    assert list((xfs / "snapshots").iterdir()) == []


def test_on_xfs_a_sparse_file_of_20_gib_takes_no_room_twice(xfs: Path) -> None:
    with (xfs / "sparse").open("wb") as stream:
        stream.truncate(20 * 2**30)
    with Snapshots(xfs / "snapshots").of(xfs, "sparse") as snapshot:
        found = snapshot.path.stat()
    assert (snapshot.is_frozen, found.st_size, found.st_blocks) == (True, 20 * 2**30, 0)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EXDEV, errno.ENOTTY])
def test_without_reflinks_the_file_itself_is_read_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    def cannot(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "ioctl", cannot)
    caplog.set_level("INFO")
    (tmp_path / "a").write_bytes(b"x")
    snapshots = Snapshots(tmp_path / "snapshots")
    for _ in range(2):
        with snapshots.of(tmp_path, "a") as snapshot:
            assert (snapshot.path.read_bytes(), snapshot.is_frozen) == (b"x", False)
    assert [record.message.split(" (")[0] for record in caplog.records] == ["no reflink"]
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_on_a_full_disk_the_file_itself_is_read_this_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def full(*given: object) -> int:
        asked.append(given)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(fcntl, "ioctl", full)
    (tmp_path / "a").write_bytes(b"x")
    snapshots = Snapshots(tmp_path / "snapshots")
    for _ in range(2):
        with snapshots.of(tmp_path, "a") as snapshot:
            assert (snapshot.path.read_bytes(), snapshot.is_frozen) == (b"x", False)
    assert len(asked) == 2


@pytest.mark.parametrize("path", ["a", "folder/key"])
def test_a_link_that_took_the_place_of_a_file_or_folder_is_not_followed(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_bytes(b"x")
    root = tmp_path / "results"
    root.mkdir()
    (root / "a").symlink_to(tmp_path / "secret/key")
    (root / "folder").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"), Snapshots(tmp_path / "s").of(root, path):
        pass


def test_what_an_agent_that_died_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "left").touch()
    Snapshots(tmp_path / "snapshots")
    assert not (tmp_path / "snapshots").exists()
