"""Code is packed whole, the same every time, without what does not belong to it."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from headrace.client import pack as packing
from headrace.client.pack import CodeArchive, pack_code
from headrace.client.places import BadPlace


def tree(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def members(archive: CodeArchive) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive.packed)) as tar:
        streams = {member.name: tar.extractfile(member) for member in tar}
        return {name: stream.read().decode() for name, stream in streams.items() if stream}


def test_a_folder_is_packed_with_its_files_at_the_root(tmp_path: Path) -> None:
    tree(tmp_path, "train.py", "lib/net.py")
    assert members(pack_code(tmp_path)) == {"train.py": "train.py", "lib/net.py": "lib/net.py"}


def test_version_control_caches_and_environments_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, "train.py", ".git/HEAD", "lib/__pycache__/net.pyc", ".venv/bin/python", "lib/.gitignore")
    assert set(members(pack_code(tmp_path))) == {"train.py", "lib/.gitignore"}


def test_data_and_results_inside_the_folder_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, "train.py", "data/big", "data.tar.gz", "out/model")
    apart = {tmp_path / "data", tmp_path / "data.tar.gz", tmp_path / "out"}
    assert set(members(pack_code(tmp_path, apart))) == {"train.py"}


def test_the_same_files_give_the_same_bytes_and_so_the_same_key(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one", "b.py", "a.py"), tree(tmp_path / "two", "a.py", "b.py")
    os.utime(one / "a.py", (1, 1))
    assert pack_code(one).packed == pack_code(two).packed
    (two / "a.py").write_text("changed")
    assert pack_code(one).key != pack_code(two).key
    assert pack_code(one).key.startswith("code/")
    assert pack_code(one).key.endswith(".tar.gz")


def test_a_program_stays_one(tmp_path: Path) -> None:
    (tree(tmp_path, "go.sh", "train.py") / "go.sh").chmod(0o700)
    with tarfile.open(fileobj=io.BytesIO(pack_code(tmp_path).packed)) as tar:
        assert {member.name: oct(member.mode) for member in tar} == {"go.sh": "0o755", "train.py": "0o644"}


def test_a_single_file_is_packed_alone(tmp_path: Path) -> None:
    tree(tmp_path, "train.py", "other.py")
    assert members(pack_code(tmp_path / "train.py")) == {"train.py": "train.py"}


@pytest.mark.parametrize("name", ["code.tar.gz", "code.zip"])
def test_an_archive_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"packed before")
    archive = pack_code(tmp_path / name)
    assert archive.packed == b"packed before"
    assert archive.key.endswith(name.removeprefix("code"))


def test_a_link_inside_the_folder_is_packed_as_its_file(tmp_path: Path) -> None:
    (tree(tmp_path, "real.py") / "alias.py").symlink_to("real.py")
    assert members(pack_code(tmp_path)) == {"real.py": "real.py", "alias.py": "real.py"}


def test_what_cannot_be_packed_is_left_out_and_named(tmp_path: Path) -> None:
    code = tree(tmp_path / "code", "train.py")
    tree(tmp_path, "secret")
    (code / "out").symlink_to(tmp_path / "secret")
    (code / "gone").symlink_to("nowhere")
    (code / "folder").symlink_to(tmp_path)
    os.mkfifo(code / "pipe")
    archive = pack_code(code)
    assert set(members(archive)) == {"train.py"}
    assert sorted(archive.left_out) == [
        "folder (a link to a folder)",
        "gone (cannot be read: No such file or directory)",
        "out (a link that leads out of the folder)",
        "pipe (not a regular file)",
    ]


def test_too_much_code_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CODE_BYTES_MAX", 5)
    with pytest.raises(BadPlace, match="put data into the data set"):
        pack_code(tree(tmp_path, "train.py"))


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="does not exist; name a folder, a file or an archive"):
        pack_code(tmp_path / "gone")


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(BadPlace, match="holds no files"):
        pack_code(tmp_path)
