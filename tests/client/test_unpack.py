"""An archive becomes a bucket once, whole, and writes nowhere else."""

from __future__ import annotations

import contextlib
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client import unpack as unpacking
from headrace.client.places import BadPlace, bucket_folder
from headrace.client.unpack import unpack, unpack_once


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, body in members:
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return path


def zipped(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for member, body in members:
            archive.writestr(member, body)
    return path


def named(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def buckets(home: Path) -> list[str]:
    return [path.name for path in (home / "buckets").iterdir()] if (home / "buckets").is_dir() else []


@pytest.mark.parametrize("make", ["tar", "zip"])
def test_every_file_of_the_archive_is_in_the_bucket(tmp_path: Path, make: str) -> None:
    if make == "tar":
        archive = tar(tmp_path / "My Digits.tar.gz", (named("./7/a.pgm"), b"seven"), (named("0/b"), b""))
    else:
        archive = zipped(tmp_path / "My Digits.zip", ("7/", b""), ("7/a.pgm", b"seven"), ("0/b", b""))
    bucket = unpack_once(archive, tmp_path / "home")
    assert bucket.startswith("data-my-digits-")
    assert files(bucket_folder(tmp_path / "home", bucket)) == {"7/a.pgm": b"seven", "0/b": b""}
    assert not any((tmp_path / "home" / "unpacking").glob("*"))


def test_the_same_bytes_are_unpacked_once_under_any_path(tmp_path: Path) -> None:
    first = tar(tmp_path / "data.tgz", (named("a"), b"1"))
    bucket = unpack_once(first, tmp_path / "home")
    marker = bucket_folder(tmp_path / "home", bucket) / "a"
    marker.write_bytes(b"kept")
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "data.tgz"
    copy.write_bytes(first.read_bytes())
    assert unpack_once(copy, tmp_path / "home") == bucket
    assert marker.read_bytes() == b"kept"


def test_other_bytes_get_another_bucket(tmp_path: Path) -> None:
    one = unpack_once(tar(tmp_path / "data.tgz", (named("a"), b"1")), tmp_path)
    assert unpack_once(tar(tmp_path / "data.tgz", (named("a"), b"2")), tmp_path) != one


def test_what_a_killed_process_left_half_unpacked_is_removed(tmp_path: Path) -> None:
    (tmp_path / "unpacking" / "files").mkdir(parents=True)
    (tmp_path / "unpacking" / "files" / "half").write_bytes(b"?")
    bucket = unpack_once(tar(tmp_path / "data.tgz", (named("a"), b"1")), tmp_path)
    assert files(bucket_folder(tmp_path, bucket)) == {"a": b"1"}


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (named("../evil"), "leads out"),
        (named("/etc/evil"), "leads out"),
        (named("a/../../evil"), "leads out"),
        (named("link", tarfile.SYMTYPE, "/etc"), "a link or special file"),
        (named("hard", tarfile.LNKTYPE, "ok"), "a link or special file"),
        (named("pipe", tarfile.FIFOTYPE), "a link or special file"),
        (named("bell\x07"), "cannot be a file's name"),
        (named("x" * 256), "cannot be a file's name"),
        (named("ok"), "twice"),
        (named("ok/below"), "cannot be unpacked"),
    ],
)
def test_a_tar_with_an_unsafe_member_is_refused_whole(tmp_path: Path, member: tarfile.TarInfo, said: str) -> None:
    archive = tar(tmp_path / "bad.tar.gz", (named("ok"), b"fine"), (member, b""))
    with pytest.raises(BadPlace, match=said):
        unpack_once(archive, tmp_path / "home")
    assert buckets(tmp_path / "home") == []
    assert not (tmp_path / "evil").exists()


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(BadPlace, match="a link or special file"):
        unpack_once(zipped(tmp_path / "bad.zip", (link, b"/etc/passwd")), tmp_path / "home")


def test_a_zip_that_leads_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="leads out"):
        unpack_once(zipped(tmp_path / "bad.zip", ("../evil", b"")), tmp_path / "home")


@pytest.mark.parametrize("ending", [".tar.gz", ".tgz", ".tar", ".zip"])
def test_a_damaged_archive_is_refused(tmp_path: Path, ending: str) -> None:
    archive = tmp_path / f"bad{ending}"
    archive.write_bytes(b"\x1f\x8b no archive at all" * 40)
    with pytest.raises(BadPlace, match="cannot be unpacked"):
        unpack_once(archive, tmp_path / "home")


def test_an_archive_cut_short_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "cut.tar.gz", *((named(str(number)), bytes([number]) * 5000) for number in range(50)))
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(BadPlace, match="cannot be unpacked"):
        unpack_once(archive, tmp_path / "home")
    assert buckets(tmp_path / "home") == []


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="holds no files"):
        unpack_once(tar(tmp_path / "empty.tar.gz"), tmp_path / "home")


def test_an_archive_that_would_fill_the_disk_is_refused_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "SPARE_BYTES", 10**18)
    with pytest.raises(BadPlace, match="does not fit"):
        unpack_once(tar(tmp_path / "bomb.tar.gz", (named("a"), b"1")), tmp_path / "home")


def test_an_archive_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "ENTRIES_MAX", 2)
    archive = tar(tmp_path / "many.tar.gz", *((named(str(number)), b"") for number in range(3)))
    with pytest.raises(BadPlace, match="more than 2 files"):
        unpack_once(archive, tmp_path / "home")


@given(st.lists(st.text("ab./\\\0\n ü\u202e", min_size=1, max_size=12), min_size=1, max_size=6))
def test_no_name_in_a_zip_writes_outside_its_target(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    root = tmp_path_factory.mktemp("zip")
    members = {info.filename: (info, b"x") for info in map(zipfile.ZipInfo, names)}
    archive = zipped(root / "any.zip", *members.values())
    with contextlib.suppress(BadPlace):
        unpack(archive, root / "target")
    assert {path.name for path in root.iterdir()} <= {"any.zip", "target"}
