"""The job's code comes into the work folder, and nothing of it goes elsewhere."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace_agent.code_folder import CodeUnusable, fetch_code
from tests.agent.surroundings import DATASET_BUCKET, S3


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "node" / "work"
    folder.mkdir(parents=True)
    return folder


def tar_with(change: Callable[[tarfile.TarInfo], None] = lambda _: None, name: str = "src/train.py") -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 5
        change(member)
        archive.addfile(member, io.BytesIO(b"print" if member.isreg() else b""))
    return body.getvalue()


def zip_with(name: str, mode: int = 0o644) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        member = zipfile.ZipInfo(name)
        member.external_attr = mode << 16
        archive.writestr(member, b"print")
    return body.getvalue()


def fetched(s3: S3, work: Path, name: str, body: bytes) -> list[str]:
    s3.put(DATASET_BUCKET, f"code/{name}", body)
    fetch_code(f"s3://{DATASET_BUCKET}/code/{name}", work)
    return names_below(work)


def names_below(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir())


@pytest.fixture(params=[True, False], ids=["with filters", "older Python"])
def _filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tarfile be as it is, and as it was before Python 3.11.4."""
    if not request.param:
        monkeypatch.delattr(tarfile, "data_filter")


@pytest.mark.usefixtures("_filters")
@pytest.mark.parametrize("name", ["src.tar.gz", "src.tgz"])
def test_a_tar_archive_is_unpacked(s3: S3, work: Path, name: str) -> None:
    assert fetched(s3, work, name, tar_with()) == ["src/train.py"]
    assert names_below(work.parent) == ["work/src/train.py"]


def test_a_zip_archive_is_unpacked_and_its_programs_stay_executable(s3: S3, work: Path) -> None:
    assert fetched(s3, work, "src.zip", zip_with("bin/run.sh", 0o755)) == ["bin/run.sh"]
    assert (work / "bin/run.sh").stat().st_mode & stat.S_IXUSR


def test_a_folder_is_copied_without_its_markers_and_neighbours(s3: S3, work: Path) -> None:
    for key in ("src/train.py", "src/pkg/a.py", "src/empty.py", "src-other/no.py"):
        s3.put(DATASET_BUCKET, key, b"" if "empty" in key else b"code")
    s3.put_exactly(DATASET_BUCKET, "src/", b"")
    s3.put_exactly(DATASET_BUCKET, "src/pkg/", b"")
    s3.put_exactly(DATASET_BUCKET, "src/nothing/", b"")
    fetch_code(f"s3://{DATASET_BUCKET}/src/", work)
    assert names_below(work) == ["empty.py", "pkg/a.py", "train.py"]


def hard_link(member: tarfile.TarInfo) -> None:
    member.type, member.linkname, member.size = tarfile.LNKTYPE, "../../outside", 0


def link_out(member: tarfile.TarInfo) -> None:
    member.type, member.linkname, member.size = tarfile.SYMTYPE, "../../outside", 0


def device(member: tarfile.TarInfo) -> None:
    member.type, member.size = tarfile.CHRTYPE, 0


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.tar.gz", tar_with(name="../escaped")),
        ("a.tar.gz", tar_with(hard_link)),
        ("a.tar.gz", tar_with(link_out)),
        ("a.tar.gz", tar_with(device)),
        ("a.tar.gz", b"no archive at all"),
        ("a.tar.gz", tar_with()[:40]),
        ("a.zip", zip_with("../escaped")),
        ("a.zip", zip_with("/escaped")),
        ("a.zip", zip_with("link", stat.S_IFLNK | 0o777)),
        ("a.zip", b"no archive at all"),
        ("a.7z", b"another kind"),
    ],
    ids=[
        "escapes",
        "hard link",
        "link out",
        "device",
        "text",
        "cut",
        "zip escapes",
        "zip root",
        "zip link",
        "zip text",
        "7z",
    ],
)
@pytest.mark.usefixtures("_filters")
def test_an_archive_that_reaches_out_or_is_none_is_refused_and_named(
    s3: S3, work: Path, name: str, body: bytes
) -> None:
    with pytest.raises(CodeUnusable, match=rf"the job's code s3://datasets/code/{name} cannot be used: "):
        fetched(s3, work, name, body)
    assert names_below(work.parent.parent) == []


@pytest.mark.parametrize("address", ["s3://datasets/absent.tar.gz", "s3://datasets/absent/", "http://x/y.tar.gz"])
@pytest.mark.usefixtures("s3")
def test_code_that_is_not_there_is_named(work: Path, address: str) -> None:
    with pytest.raises(CodeUnusable, match=address):
        fetch_code(address, work)
